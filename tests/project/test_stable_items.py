"""The list of stable items in public-api/README.md."""

import interfaces


def test_each_stable_item_is_public():
    stable = interfaces.stable_items()
    assert stable == sorted(set(stable)) and len(stable) > 50
    crates = {item.split("::")[0] for item in stable}
    public = {item for crate in crates for item in interfaces.rust_items(crate)}
    assert not set(stable) - public


def test_a_stable_item_names_only_stable_items():
    """The first line of a type, and all of a function: their members may name others, and are not stable then."""
    lines = interfaces.rust()
    assert all(lines.values()), [item for item, found in lines.items() if not found]
    assert sum(map(len, lines.values())) > 600


def test_what_is_not_stable_is_left_out():
    lines = interfaces.rust()
    assert any("::follow(" in line for line in lines["blkimage::OpenOptions"])
    assert not any("::http(" in line for line in lines["blkimage::OpenOptions"])
