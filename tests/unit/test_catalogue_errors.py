from __future__ import annotations

import os
from pathlib import Path

import pytest

from maple_parsl.errors import ConfigurationError
from tests.unit.site_world import DATA, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def refusal(world: World, name: str = "tern") -> str:
    with pytest.raises(ConfigurationError) as caught:
        world.catalogue.get(name)
    text = str(caught.value)
    assert "pydantic" not in text
    assert "Traceback" not in text
    assert "https://errors" not in text
    return text


@pytest.mark.parametrize(
    "text,words",
    [
        ("[kinds.gpu]\ncoers = 4", ["kinds.gpu.coers", "unknown key", "did you mean cores"]),
        ("[schedular]\nkind = 'pbs'", ["schedular", "unknown key", "did you mean scheduler"]),
        ('[kinds.gpu]\ndevices = "four"', ["kinds.gpu.devices", "a whole number", "'four'"]),
        ("[kinds.gpu]\ndevices = 4.0", ["kinds.gpu.devices", "a whole number"]),
        ("[kinds.gpu]\ndevices = true", ["kinds.gpu.devices", "a whole number", "true"]),
        ("[kinds.gpu]\ndevices = 0", ["kinds.gpu.devices", "greater than or equal to 1"]),
        ('[directives]\nexclusive = "yes"', ["directives.exclusive", "true or false"]),
        ("[kinds.gpu]\ntitle = 4", ["kinds.gpu.title", "text in quotes", "the number 4"]),
        ('[directives]\nalways = "-x"', ["directives.always", "a list"]),
        ('[scheduler]\nkind = "lsf-x"', ["scheduler.kind", "'slurm'", "'lsf-x'"]),
        ('[scheduler]\nmin_walltime = "soon"', ["scheduler.min_walltime", "'soon'", "90m"]),
        ("[scheduler]\nchecked_on = true", ["scheduler.checked_on", "a date"]),
        ('[kinds.gpu]\nlauncher = "none"', ["kinds.gpu.launcher", "not in launchers"]),
        ("[kinds.gpu]\ndevice_map = []\nvisible_order = [0]", ["kinds.gpu", "visible_order"]),
        ('[[queues.entry]]\nname = "debug"\nkinds = ["cpu"]', ["debug", "'cpu'"]),
        (
            '[[queues.entry]]\nname = "debug"\nmax_nodes = "2"',
            ["queues.entry.debug.max_nodes", "whole number"],
        ),
        ("[[queues.entry]]\nmax_nodes = 2", ["queues.entry", "queue 1 has no name"]),
        ('[[queues.entry]]\nname = "a"\n[[queues.entry]]\nname = "A"', ["two queues of this name"]),
        ("[queues]\nentry = 3", ["queues.entry", "[[queues.entry]]"]),
        ("scheduler = 'slurm'", ["scheduler", "is a value here, but a table in"]),
        ("[title]\nx = 1", ["title", "is a table here, but a value in"]),
        ("[kinds.gpx]\ncores = 4", ["kinds.gpx", "lacks", "vendor", "did you mean gpu"]),
        ('[kinds."a b"]\ncores = 4', ["kinds.a b", "name is not allowed"]),
        ("[environments.default.exports]\n'A-B' = 'x'", ["environments.default.exports.A-B", "not allowed"]),
        ('[kinds.gpu]\ntitle = """a\nb"""', ["kinds.gpu.title", "a line break"]),
        ('[kinds.gpu]\ntitle = "a\\u0000b"', ["kinds.gpu.title", "control character"]),
        ('[kinds.gpu]\ntitle = "a\\u001b[2J"', ["kinds.gpu.title", "control character"]),
        ('[environments.default.exports]\n"A\\nB" = "x"', ["environments.default.exports", "line break"]),
        ("[kinds.gpu]\nmemory_gib = nan", ["kinds.gpu.memory_gib", "no fact"]),
        ("format = 2", ["format", "newer Maple"]),
        ("extends = 3", ["extends", "in quotes"]),
        ('extends = "tern"\nname = "other"', ["name", "keeps its name"]),
    ],
)
def test_a_wrong_value_is_refused_with_file_and_key(world: World, text: str, words: list[str]) -> None:
    path = world.write("user", text)
    message = refusal(world)
    for word in [str(path), *words]:
        assert word in message


def test_every_fault_is_listed(world: World) -> None:
    world.write("user", '[kinds.gpu]\ncores = "x"\nnodes = "y"\n[directives]\nfoo = 1')
    message = refusal(world)
    assert message.count("\n  - ") == 3


@pytest.mark.parametrize(
    "raw,words",
    [
        (b"[kinds\n", "not valid TOML"),
        (b"a = 1\na = 2\n", "not valid TOML"),
        (b"a = \xff", "not UTF-8"),
        (b"# " + b"x" * (1 << 20), "bytes; a site file has at most"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "beyond all bounds"),
        (b"a = " + b"9" * 5000, "beyond all bounds"),
        (b"\0", "not valid TOML"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(world: World, raw: bytes, words: str) -> None:
    path = world.write("user", "")
    path.write_bytes(raw)
    message = refusal(world)
    assert str(path) in message
    assert words in message
    assert world.catalogue.get("heron").site.name == "heron"


def test_a_byte_order_mark_and_windows_line_ends_are_fine(world: World) -> None:
    world.write("user", "").write_bytes(b"\xef\xbb\xbf[kinds.gpu]\r\ncores = 3\r\n")
    assert world.catalogue.get("tern").site.kinds["gpu"].cores == 3


def test_folders_pipes_and_lost_files_are_refused(world: World) -> None:
    path = world.root / "user/sites/tern.toml"
    path.mkdir()
    assert "is a folder" in refusal(world)
    path.rmdir()
    os.mkfifo(path)
    assert "not a regular file" in refusal(world)
    path.unlink()
    path.symlink_to("nowhere")
    assert "no such file" in refusal(world)
    assert "no such file" in refusal(world, "/no/where.toml")
    assert "is a folder" in refusal(world, "/tmp/")
    assert "cannot be read" in refusal(world, "a/\0.toml")


def test_a_broken_file_of_any_name_is_reported_for_its_site_only(world: World) -> None:
    path = world.write("group", 'extends = "tern"\n[kinds.gpu\n', "ours.toml")
    assert str(path) in refusal(world)
    assert world.catalogue.get("heron").notices == ()
    assert world.catalogue.names() == ("heron", "tern")


def test_the_catalogue_holds_no_ones_account(world: World) -> None:
    path = world.root / "shipped/tern.toml"
    path.write_text(path.read_text() + '[defaults]\naccount = "x"\n')
    assert "defaults" in refusal(world)


def test_the_catalogue_must_state_its_sources(world: World) -> None:
    path = world.root / "shipped/tern.toml"
    path.write_text(path.read_text().replace('source = "tern guide, nodes"\n', ""))
    message = refusal(world)
    assert "kinds.gpu: lacks source" in message
    assert str(path) in message


def test_two_files_of_the_catalogue_for_one_site_are_refused(world: World) -> None:
    world.write("shipped", (DATA / "tern.toml").read_text(), "other.toml")
    assert "another file of the catalogue" in refusal(world)


def test_an_alias_of_two_sites_is_refused_but_their_names_work(world: World) -> None:
    path = world.root / "shipped/heron.toml"
    path.write_text(path.read_text().replace("heron-pbs", "arctic", 1))
    message = refusal(world, "arctic")
    assert "heron" in message
    assert "tern" in message
    assert world.catalogue.get("tern").site.name == "tern"


@pytest.mark.parametrize("text", ['extends = "tren"', 'name = "tren"\n[kinds.gpu]\ncores = 1'])
def test_changes_to_a_site_that_does_not_exist_are_not_lost_silently(world: World, text: str) -> None:
    path = world.write("user", text, "ours.toml")
    assert any(str(path) in notice and "'tren'" in notice for notice in world.catalogue.get("tern").notices)
    assert str(path) in refusal(world, "tren")


def test_faults_are_found_below_a_layer_that_hides_them(world: World) -> None:
    group = world.write("group", "[kinds.gpu]\ncores = 'x'")
    user = world.write("user", "[kinds.gpu]\nfoo = 1")
    world.write("project", "[kinds.gpu]\ncores = 3")
    faults = [str(fault) for fault in world.catalogue.faults("tern")]
    assert len(faults) == 2
    assert str(group) in faults[0]
    assert str(user) in faults[1]
    assert world.catalogue.faults("heron") == ()
