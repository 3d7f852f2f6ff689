"""The MCP server over standard input and output, by the official client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def talk(home: Path, calls: list[tuple[str, dict[str, Any]]], *options: str) -> tuple[list[str], list[dict[str, Any]]]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    code = "import sys; from maple_parsl.cli import main; sys.exit(main())"
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", code, "mcp", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MAPLE_HOME": str(home)},
    )

    async def session() -> tuple[list[str], list[dict[str, Any]]]:
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            tools = [tool.name for tool in (await client.list_tools()).tools]
            answers = [json.loads((await client.call_tool(name, given)).content[0].text) for name, given in calls]  # type: ignore[union-attr]
            return tools, answers

    return asyncio.run(asyncio.wait_for(session(), 120))


@pytest.mark.filterwarnings("default")
def test_it_plans_checks_and_diagnoses_and_does_not_submit(tmp_path: Path) -> None:
    words = "fsdp train.py on 2 polaris nodes, 1 hour in debug, project datascience"
    tools, answers = talk(
        tmp_path,
        [
            ("plan", {"words": words}),
            ("plan", {"words": "fsdp on polaris"}),
            ("check", {"script": "#!/bin/bash\n#SBATCH -N 2\n#PBS -l select=2\npython t.py\n", "site": "polaris"}),
            ("check", {"script": "x", "site": "/etc/passwd"}),
            ("diagnose", {"log": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"}),
            ("status", {}),
        ],
    )
    assert tools == ["plan", "check", "diagnose", "status"]
    plan, open_questions, check, refused, cause, runs = answers
    assert "#PBS -q debug" in plan["script"]
    assert open_questions["questions"][0]["field"] == "nodes"
    assert check["findings"]
    assert refused["kind"] == "ConfigurationError"
    assert cause["causes"][0]["class"] == "out_of_memory"
    assert runs == {"runs": []}


@pytest.mark.filterwarnings("default")
def test_submission_is_there_only_where_it_was_enabled(tmp_path: Path) -> None:
    tools, answers = talk(
        tmp_path, [("submit", {"words": "ddp t.py on polaris 2 nodes", "max_node_hours": 1})], "--allow-submit"
    )
    assert "submit" in tools
    assert answers[0]["kind"] == "UnansweredError"
