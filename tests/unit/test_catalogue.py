from __future__ import annotations

import os
import time
from datetime import date
from pathlib import Path

import pytest

from maple_parsl.catalogue import Catalogue, user_folder
from maple_parsl.data import data_folder
from maple_parsl.errors import ConfigurationError, UnknownNameError
from tests.unit.site_world import DATA, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_names_are_sorted_and_retired_sites_apart(world: World) -> None:
    assert world.catalogue.names() == ("heron", "tern")
    assert world.catalogue.retired() == ("dodo",)
    assert world.catalogue.get("dodo").site.status == "retired"


@pytest.mark.parametrize("name", ["tern", "TERN", "Arctic", "tern-gpu"])
def test_a_site_is_found_by_name_and_alias_without_regard_to_case(world: World, name: str) -> None:
    assert world.catalogue.get(name).site.name == "tern"


def test_aliases_over_several_lines_are_found(world: World) -> None:
    assert world.catalogue.get("heron-pbs").site.name == "heron"


@pytest.mark.parametrize("name,near", [("tren", "tern"), ("artcic", "arctic"), ("Herron", "heron")])
def test_an_unknown_name_offers_the_nearest(world: World, name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        world.catalogue.get(name)
    assert near in caught.value.near
    assert "unknown site" in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", "\0", "a\nb"])
def test_a_senseless_name_is_unknown(world: World, name: str) -> None:
    with pytest.raises(UnknownNameError):
        world.catalogue.get(name)


def test_every_value_knows_its_origin(world: World) -> None:
    record = world.catalogue.get("tern")
    nodes = record.origin("kinds.gpu.devices")
    assert (nodes.layer, nodes.source, nodes.checked_on) == (
        "catalogue",
        "tern guide, nodes",
        date(2026, 9, 1),
    )
    assert nodes.file.name == "tern.toml"
    assert record.origins["queues.entry.debug.max_nodes"].source == "tern guide, queues"
    assert record.origins["queues.entry.Main.bands"].checked_on == date(2026, 11, 1)
    assert record.origins["environments.default.network.NCCL_SOCKET_IFNAME"].source == "tern guide, software"


def test_the_origin_of_an_absent_value_is_that_of_its_group(world: World) -> None:
    record = world.catalogue.get("tern")
    assert record.origin("kinds.gpu.memory_gib").source == "tern guide, nodes"
    assert record.origin("queues.entry.debug.min_nodes").source == "tern guide, queues"
    assert record.origin("storage.purge_days") == record.origin("name")


def test_the_age_of_the_catalogue_does_not_come_from_the_installation(world: World) -> None:
    os.utime(world.root / "shipped/tern.toml", (0, 0))
    assert world.catalogue.get("tern").oldest == date(2026, 9, 1)


def test_later_layers_win_value_by_value(world: World) -> None:
    world.write("group", 'name = "tern"\n[kinds.gpu]\ncores = 1\nnodes = 1\nmemory_gib = 1.0')
    world.write("user", 'extends = "tern"\n[kinds.gpu]\ncores = 2\nnodes = 2')
    world.write("project", "[kinds.gpu]\ncores = 3")
    record = world.catalogue.get("tern")
    kind = record.site.kinds["gpu"]
    assert (kind.cores, kind.nodes, kind.memory_gib, kind.devices) == (3, 2, 1.0, 4)
    layers = [record.origins[f"kinds.gpu.{k}"].layer for k in ("cores", "nodes", "memory_gib", "devices")]
    assert layers == ["project", "user", "group", "catalogue"]
    assert len(record.files) == 4


def test_queues_merge_by_name_and_other_lists_are_replaced(world: World) -> None:
    world.write(
        "user",
        '[directives]\nalways = []\n[[queues.entry]]\nname = "main"\nmax_nodes = 50\n'
        '[[queues.entry]]\nname = "night"\nkinds = ["gpu"]',
    )
    record = world.catalogue.get("tern")
    assert record.site.queues is not None
    assert [queue.name for queue in record.site.queues.entry] == ["debug", "Main", "night"]
    main = record.site.queue("Main")
    assert main is not None
    assert (main.max_nodes, len(main.bands), main.kinds) == (50, 2, ("gpu",))
    assert record.site.directives.always == ()
    assert record.origins["queues.entry.Main.max_nodes"].layer == "user"
    assert record.origins["queues.entry.Main.bands"].layer == "catalogue"


def test_a_value_without_a_source_is_from_its_file_and_the_day_it_was_edited(world: World) -> None:
    path = world.write("user", "[kinds.gpu]\ncores = 8\n[storage]\npurge_days = 9")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    record = world.catalogue.get("tern")
    day = date.fromtimestamp(1_700_000_000)
    origin = record.origin("kinds.gpu.cores")
    assert (origin.source, origin.checked_on) == (str(path), day)
    assert record.site.kinds["gpu"].source == "tern guide, nodes"
    assert record.site.storage is not None
    assert (record.site.storage.source, record.site.storage.checked_on) == (str(path), day)


def test_a_source_given_without_a_date_is_as_old_as_its_file(world: World) -> None:
    path = world.write("user", '[kinds.gpu]\nsource = "asked the admins"\ncores = 8')
    os.utime(path, (1_700_000_000, 1_700_000_000))
    record = world.catalogue.get("tern")
    assert record.origin("kinds.gpu.cores").source == "asked the admins"
    assert record.site.kinds["gpu"].checked_on == date.fromtimestamp(1_700_000_000)


def test_an_overlay_may_name_the_site_by_an_alias_and_have_any_file_name(world: World) -> None:
    world.write("group", 'name = "arctic"\n[kinds.gpu]\ncores = 7', "ours.toml")
    assert world.catalogue.get("tern").site.kinds["gpu"].cores == 7
    assert world.catalogue.get("tern").site.name == "tern"


def test_the_search_path_takes_files_and_folders_and_the_later_wins(world: World, tmp_path: Path) -> None:
    one = world.write("one", "[kinds.gpu]\ncores = 1")
    two = world.write("two", "[kinds.gpu]\ncores = 2")
    world.group_path = f"{one}:{two.parent}"
    assert world.catalogue.get("tern").site.kinds["gpu"].cores == 2
    world.group_path = f"{two}:{one}"
    assert world.catalogue.get("tern").site.kinds["gpu"].cores == 1


def test_a_missing_place_in_the_search_path_is_said_and_breaks_nothing(world: World) -> None:
    world.group_path = "/no/such/folder"
    record = world.catalogue.get("tern")
    assert any("/no/such/folder" in notice and "MAPLE_SITE_PATH" in notice for notice in record.notices)


def test_a_new_site_may_come_from_any_layer(world: World) -> None:
    text = (DATA / "tern.toml").read_text().replace('"tern"', '"plover"').replace("arctic", "plovers")
    text = text.replace("tern-gpu", "plover-gpu")
    world.write("project", text, "plover.toml")
    assert world.catalogue.names() == ("heron", "plover", "tern")
    assert world.catalogue.get("plover").origin("kinds.gpu.cores").layer == "project"


def test_an_account_from_a_group_or_project_file_is_said(world: World) -> None:
    path = world.write("group", '[defaults]\naccount = "birds"')
    record = world.catalogue.get("tern")
    assert record.site.defaults.account == "birds"
    assert record.notices == (f"the account birds comes from the group file {path}",)
    world.write("user", '[defaults]\naccount = "mine"')
    assert world.catalogue.get("tern").notices == ()
    world.write("project", '[defaults]\naccount = "theirs"')
    assert "comes from the project file" in world.catalogue.get("tern").notices[0]


def test_a_path_is_a_whole_site_or_changes_a_known_one(world: World, tmp_path: Path) -> None:
    whole = world.write("elsewhere", (DATA / "heron.toml").read_text().replace("gpus = 6", "gpus = 5"))
    assert world.catalogue.get(str(whole)).site.kinds["node"].gpus == 5
    part = world.write("elsewhere", 'extends = "tern"\n[kinds.gpu]\ncores = 5', "part.toml")
    world.write("user", "[kinds.gpu]\ncores = 4\nnodes = 4")
    record = world.catalogue.get(str(part))
    assert (record.site.name, record.site.kinds["gpu"].cores, record.site.kinds["gpu"].nodes) == (
        "tern",
        5,
        4,
    )
    assert record.origin("kinds.gpu.cores").layer == "path"
    assert world.catalogue.get("tern").site.kinds["gpu"].cores == 4


def test_a_path_is_relative_to_the_working_folder(world: World) -> None:
    world.write("project/deep/er", 'name = "tern"\n[kinds.gpu]\ncores = 5', "mine.toml")
    assert world.catalogue.get("mine.toml").site.kinds["gpu"].cores == 5
    assert world.catalogue.get("./mine.toml").site.kinds["gpu"].cores == 5


def test_the_nearest_project_is_used(world: World) -> None:
    world.write("project", "[kinds.gpu]\ncores = 1")
    world.write("project/deep/.maple/sites", "[kinds.gpu]\nnodes = 2")
    kind = world.catalogue.get("tern").site.kinds["gpu"]
    assert (kind.cores, kind.nodes) == (64, 2)


def test_a_project_of_another_user_is_not_read_silently(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("project", "[kinds.gpu]\ncores = 1")
    mine = os.geteuid()
    if mine == 0:  # root gives the folder away; anyone else becomes another user
        os.chown(world.root / "project/.maple", 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: mine + 12345)
    record = world.catalogue.get("tern")
    assert record.site.kinds["gpu"].cores == 64
    assert "another user" in record.notices[0]


def test_where_the_users_files_are() -> None:
    assert user_folder({"MAPLE_CONFIG_HOME": "/a", "XDG_CONFIG_HOME": "/b", "HOME": "/c"}) == Path("/a/sites")
    assert user_folder({"XDG_CONFIG_HOME": "/b", "HOME": "/c"}) == Path("/b/maple/sites")
    assert user_folder({"XDG_CONFIG_HOME": "relative", "HOME": "/c"}) == Path("/c/.config/maple/sites")
    assert user_folder({}) is None


def test_a_changed_file_is_read_again(world: World) -> None:
    catalogue = world.catalogue
    path = world.write("user", "[kinds.gpu]\ncores = 1")
    assert catalogue.get("tern").site.kinds["gpu"].cores == 1
    path.write_text("[kinds.gpu]\ncores = 11")
    assert catalogue.get("tern").site.kinds["gpu"].cores == 11


def test_a_known_site_is_loaded_in_less_than_5_ms(world: World) -> None:
    catalogue = world.catalogue
    catalogue.get("tern")
    took = []
    for _ in range(20):
        start = time.perf_counter()
        catalogue.get("tern")
        took.append(time.perf_counter() - start)
    assert min(took) < 0.005


def test_only_the_asked_site_is_parsed(world: World) -> None:
    world.write("shipped", 'name = "broken"\ntitle = "x"\n[scheduler\n', "broken.toml")
    assert world.catalogue.names() == ("broken", "heron", "tern")
    assert world.catalogue.get("tern").site.name == "tern"


def test_data_folders_are_found_or_missed_in_plain_words() -> None:
    with pytest.raises(ConfigurationError, match="lacks its folder 'nonsense'"):
        data_folder("nonsense")  # type: ignore[arg-type]


def test_the_shipped_catalogue_can_be_listed() -> None:
    assert {"local", "perlmutter", "polaris"} <= set(Catalogue.load({}, Path("/")).names())
