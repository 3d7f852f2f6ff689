"""Laws of laying files over one another."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple_parsl.catalogue.merge import Tree, annotate, leaves, overlay, plain
from maple_parsl.catalogue.record import Layer, Origin
from maple_parsl.errors import ConfigurationError
from tests.unit.site_world import DATA, World

KEYS = st.sampled_from(["a", "b", "c", "source"])
SCALARS = st.one_of(st.integers(0, 3), st.sampled_from(["x", "y"]), st.lists(st.integers(0, 2), max_size=2))
TABLES = st.recursive(
    st.dictionaries(KEYS, SCALARS, max_size=3),
    lambda inner: st.dictionaries(KEYS, inner | SCALARS, max_size=3),
)
QUEUES = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["q", "Q", "r", "s"])}, optional={"max_nodes": st.integers(1, 3)}),
    max_size=3,
    unique_by=lambda queue: queue["name"].lower(),
)
FILES = st.builds(lambda table, queues: {**table, "queues": {"entry": queues}}, TABLES, QUEUES)
LAYERS: tuple[Layer, ...] = ("group", "user", "project")


def tree(data: dict[str, Any], layer: Layer) -> Tree:
    return annotate(data, Origin(layer, Path(f"/{layer}.toml"), f"/{layer}.toml", date(2026, 1, 1)))


def both(left: Tree | None, right: Tree | None) -> Tree | None:
    if left is None or right is None:
        return None
    try:
        return overlay(left, right)
    except ConfigurationError:
        return None


@given(FILES, FILES, FILES)
def test_overlays_are_associative_with_their_origins(a: Any, b: Any, c: Any) -> None:
    x, y, z = (tree(data, layer) for data, layer in zip((a, b, c), LAYERS, strict=True))
    assert both(both(x, y), z) == both(x, both(y, z))


@given(FILES)
def test_a_file_over_itself_or_over_nothing_is_itself(a: Any) -> None:
    x = tree(a, "user")
    assert overlay({}, x) == x == overlay(x, {}) == overlay(x, x)
    assert plain(x) == a


def leaf_paths(value: Any, key: str = "") -> set[str]:
    if key == "queues.entry":
        value = {queue["name"]: queue for queue in value}
    if isinstance(value, dict):
        inner = (leaf_paths(item, f"{key}.{name}" if key else name) for name, item in value.items())
        return set().union(*inner)
    return {key}


@given(FILES, FILES)
def test_every_leaf_of_the_result_has_the_origin_of_the_file_that_states_it(a: Any, b: Any) -> None:
    merged = both(tree(a, "group"), tree(b, "user"))
    if merged is None:
        return
    origins = {".".join(path): leaf.origin for path, leaf in leaves(merged)}
    assert set(origins) == leaf_paths(plain(merged))
    above = {path.lower() for path in leaf_paths(b) if not path.endswith(".name")}
    for path, origin in origins.items():
        if not path.endswith(".name"):
            assert origin.layer == ("user" if path.lower() in above else "group")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize("name", ["tern", "heron", "dodo"])
def test_the_origins_cover_each_stated_value_of_a_site(world: World, name: str) -> None:
    record = world.catalogue.get(name)
    stated = record.site.model_dump(mode="json", exclude_unset=True)
    shipped = leaf_paths(stated)
    assert set(record.origins) >= {path for path in shipped if not path.count("device_map")}
    assert all(origin.file == world.root / "shipped" / f"{name}.toml" for origin in record.origins.values())


@given(
    st.sampled_from(["", "scheduler", "directives", "kinds.gpu", "launchers.default", "environments.default"]),
    st.from_regex(r"[a-z]{3,12}", fullmatch=True).map(lambda key: f"zz_{key}"),
)
@settings(max_examples=40, deadline=None)
def test_unknown_keys_are_always_refused_by_name(world: World, table: str, key: str) -> None:
    path = world.write("elsewhere", f'extends = "tern"\n{f"[{table}]" if table else ""}\n{key} = 1\n')
    with pytest.raises(ConfigurationError) as caught:
        world.catalogue.get(str(path))
    assert f"{table}.{key}".lstrip(".") in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_data_of_these_tests_is_there() -> None:
    assert (DATA / "tern.toml").is_file()
