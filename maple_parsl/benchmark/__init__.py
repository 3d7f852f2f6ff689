"""Benchmark: requests for launches on nine sites, each with the world it has to end in, judged by execution."""
