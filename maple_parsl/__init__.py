"""Maple: correct launches of distributed deep-learning training on any GPU cluster."""
