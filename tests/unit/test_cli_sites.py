from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from maple_parsl.catalogue import Catalogue
from maple_parsl.cli import main
from maple_parsl.cli.sites.listing import SCHEDULERS
from maple_parsl.site import Scheduler
from tests.unit.site_world import DATA, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The made-up sites as a group's; the shipped catalogue is empty."""
    world = World(tmp_path)
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr("maple_parsl.catalogue.catalogue.data_folder", lambda name: tmp_path / "empty")
    world.group_path = str(tmp_path / "shipped")
    for key, value in world.environ.items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("MAPLE_SITE", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path / "project")
    return world


class Out:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.err = ""

    def __call__(self, *words: str) -> tuple[int, str]:
        code = main(list(words))
        captured = self.capsys.readouterr()
        self.err = captured.err
        return code, captured.out

    def json(self, *words: str) -> Any:
        _, out = self(*words, "--json")
        return json.loads(out)


@pytest.fixture
def maple(capsys: pytest.CaptureFixture[str]) -> Out:
    return Out(capsys)


def test_the_list_says_what_a_user_chooses_by(world: World, maple: Out) -> None:
    code, out = maple("sites")
    assert code == 0
    tern = next(line for line in out.splitlines() if line.startswith("tern"))
    for word in ("Tern, a test cluster", "Slurm", "gpu (4)"):
        assert word in tern
    assert "not executed on the machine itself: all" in out
    assert "2026-09-01" in tern
    assert "dodo" not in out
    assert "dodo" in maple("sites", "--all")[1]
    listed = maple.json("sites")["sites"]
    assert [site["name"] for site in listed] == ["heron", "tern"]
    assert listed[1]["queues"] == 2
    assert listed[0]["queues"] is None


def test_every_scheduler_a_site_may_have_can_be_listed() -> None:
    assert set(get_args(Scheduler.model_fields["kind"].annotation)) == set(SCHEDULERS)


def test_a_narrow_terminal_keeps_one_line_per_site(world: World, maple: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out = maple("sites")
    lines = out.splitlines()
    assert max(len(line) for line in lines) <= 60
    tern = next(line for line in lines if line.startswith("tern"))
    assert all(word in tern for word in ("Slurm", "gpu (4)", "2026-09-01"))


def test_a_broken_site_is_listed_with_its_reason(world: World, maple: Out) -> None:
    path = world.write("user", "[kinds")
    code, out = maple("sites")
    assert code == 0
    assert "heron" in out
    assert str(path) in maple.err.replace("\n", "")
    assert "error" in maple.json("sites")["sites"][1]


def test_a_site_is_shown_with_its_sources(world: World, maple: Out) -> None:
    path = world.write("user", "[kinds.gpu]\ncores = 8")
    code, out = maple("sites", "show", "arctic")
    assert code == 0
    assert "tern guide, nodes, checked 2026-09-01" in out
    assert "cores 48-63" in out
    cores = next(line for line in out.splitlines() if line.split()[:1] == ["cores"])
    assert "user file" in cores
    shown = maple.json("sites", "show", "tern")
    assert shown["site"]["kinds"]["gpu"]["cores"] == 8
    assert shown["origins"]["kinds.gpu.cores"]["file"] == str(path)
    assert shown["origins"]["queues.entry.debug.max_nodes"]["source"] == "tern guide, queues"


def test_origins_name_layer_and_file_of_each_group(world: World, maple: Out) -> None:
    _, out = maple("sites", "show", "tern", "--origins")
    assert f"group file {world.root / 'shipped/tern.toml'}: tern guide, nodes" in out.replace("\n", "")
    assert "as above" in out


def test_long_lines_are_folded(world: World, maple: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    world.write("user", f'[kinds.gpu]\nnote = "{"long " * 60}"')
    _, out = maple("sites", "show", "tern", "--origins")
    assert max(len(line) for line in out.splitlines()) <= 60


def test_check_finds_old_facts(world: World, maple: Out) -> None:
    code, _ = maple("sites", "check", "--max-age-days", "1000000")
    assert code == 0
    path = world.root / "shipped/tern.toml"
    path.write_text(path.read_text().replace("2026-09-01", "2020-09-01"))
    code, out = maple("sites", "check", "tern", "--max-age-days", "1000")
    assert code == 1
    assert "kinds.gpu was checked" in out
    assert maple("sites", "check", "heron", "--max-age-days", "1000000")[0] == 0


def test_check_does_not_ask_for_new_facts_of_a_retired_site(world: World, maple: Out) -> None:
    assert maple("sites", "check", "dodo")[0] == 0


def test_check_finds_broken_files_of_every_layer(world: World, maple: Out) -> None:
    user = world.write("user", "[kinds.gpu]\nfoo = 1")
    project = world.write("project", "[kinds", "heron.toml")
    code, out = maple("sites", "check", "--max-age-days", "1000000")
    assert code == 3
    assert str(user) in out.replace("\n", "")
    assert str(project) in out.replace("\n", "")
    assert maple("sites", "check", str(user))[0] == 3


def test_check_finds_a_place_that_is_not_there(world: World, maple: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_SITE_PATH", f"{world.group_path}:/no/such/place")
    assert maple("sites", "check", "--max-age-days", "1000000")[0] == 3


@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_an_added_site_can_be_read_as_it_stands(world: World, maple: Out, scheduler: str) -> None:
    code, out = maple("sites", "add", "plover", "--scheduler", scheduler)
    path = world.root / "user/sites/plover.toml"
    assert code == 0
    assert str(path) in out.replace("\n", "")
    site = Catalogue.load().get("plover").site
    assert site.scheduler.kind == scheduler
    assert site.queues is None
    code, out = maple("sites", "check", "plover")
    assert code == 1
    assert "plover: to be filled in" in out
    assert "title is not filled in yet" in out
    assert "kinds.default is not filled in yet" in out
    assert list(path.parent.iterdir()) == [path]


def test_adding_overwrites_nothing(world: World, maple: Out) -> None:
    path = world.write("user", "precious", "plover.toml")
    code, _ = maple("sites", "add", "plover", "--scheduler", "pbs")
    assert code == 3
    assert "--force" in maple.err
    assert path.read_text() == "precious"
    assert maple("sites", "add", "plover", "--scheduler", "pbs", "--force")[0] == 0
    assert Catalogue.load().get("plover").site.scheduler.kind == "pbs"


def test_adding_a_known_site_writes_ones_own_changes(world: World, maple: Out) -> None:
    assert maple.json("sites", "add", "Arctic")["name"] == "tern"
    before = Catalogue.load().get("heron").site
    record = Catalogue.load().get("tern")
    assert record.files[-1] == world.root / "user/sites/Arctic.toml"
    assert record.site.kinds["gpu"].devices == 4
    assert before == Catalogue.load().get("heron").site


def test_adding_elsewhere_says_how_to_use_it(world: World, maple: Out, tmp_path: Path) -> None:
    folder = tmp_path / "new folder"
    code, out = maple("sites", "add", "plover", "--scheduler", "slurm", "--path", str(folder))
    assert code == 0
    assert "MAPLE_SITE_PATH" in out
    assert Catalogue.load().get(str(folder / "plover.toml")).site.name == "plover"


@pytest.mark.parametrize("name", ["a b", "../x", "", "-x", "x.toml", "a\nb"])
def test_a_name_that_is_none_is_refused(world: World, maple: Out, name: str) -> None:
    assert maple("sites", "add", "--scheduler", "pbs", "--", name)[0] == 2


def test_a_known_site_with_a_broken_file_is_not_defined_anew(world: World, maple: Out) -> None:
    path = world.write("user", "[kinds", "heron.toml")
    assert maple("sites", "add", "heron-pbs", "--scheduler", "pbs")[0] == 3
    assert str(path) in maple.err
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_a_file_is_refused(world: World, maple: Out, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in ("file", "file/deeper"):
        words = ("sites", "add", "plover", "--scheduler", "pbs", "--path", str(tmp_path / folder))
        assert maple(*words)[0] == 3
        assert "not a folder" in maple.err


def test_a_file_system_without_links_will_do(world: World, maple: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr("os.link", link)
    assert maple("sites", "add", "plover", "--scheduler", "pbs")[0] == 0
    assert maple("sites", "add", "plover", "--scheduler", "pbs")[0] == 3


def test_an_unknown_scheduler_is_refused(world: World, maple: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    assert maple("sites", "add", "plover", "--scheduler", "slrum")[0] == 2
    assert "did you mean slurm" in maple.err
    monkeypatch.setenv("PATH", "/nowhere")
    assert maple("sites", "add", "plover")[0] == 2
    assert "neither sbatch nor qsub" in maple.err


def test_here_names_the_site_and_the_evidence(world: World, maple: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERN_HOST", "tern")
    code, out = maple("sites", "here")
    assert code == 0
    assert out.startswith("tern\n")
    assert "TERN_HOST=tern" in out
    found = maple.json("sites", "here")
    assert found["site"] == "tern"
    assert found["devices"]["cores"]


def test_here_admits_when_it_cannot_tell(world: World, maple: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERN_HOST", "tern")
    monkeypatch.setenv("BIRD_PATH", "/opt/heron/")
    code, out = maple("sites", "here")
    assert code == 1
    assert "heron and tern" in out


def test_nothing_in_a_file_drives_the_terminal(world: World, maple: Out) -> None:
    world.write("user", '[kinds.gpu]\nnote = "a\\u202eb"')
    _, out = maple("sites", "show", "tern")
    assert "\u202e" not in out


def test_the_test_sites_are_complete() -> None:
    assert {file.stem for file in DATA.glob("*.toml")} >= {"tern", "heron", "dodo"}
