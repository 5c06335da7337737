"""What programs of each language rely on, as lines: public-api/ for Rust, go/api.txt for Go, the stubs for Python."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUST = ROOT / "public-api"
PYTHON = ROOT / "python/blkhash"

RUST_ITEM = re.compile(r"(?:#\[\w+\] )*pub (?:unsafe |const |async )*(?:(mod|struct|enum|trait|fn|type|const) )?(blk\w+(?:::\w+)*)")
RUST_PATH = re.compile(r"\bblk\w+(?:::\w+)+")


def is_type(name):
    return name[:1].isupper() and not name.isupper()


def item_of(path):
    """The item of a crate that a path is of: a type for its members."""
    names = path.split("::")
    ends = [at for at, name in enumerate(names) if is_type(name)]
    return "::".join(names[: ends[0] + 1]) if ends else path


def rust_items(crate):
    """The items of a crate, each with its lines in public-api/, without implementations of traits."""
    items, of_trait = {}, False
    for line in (RUST / f"{crate}.txt").read_text().splitlines():
        if line.startswith("impl"):
            of_trait = " for " in re.sub(r"for<'\w+>", "", line)
            continue
        found = RUST_ITEM.match(re.sub(r"<[^<>]*>::", "::", line))
        if found and found[1] != "mod":
            item = item_of(found[2])
            of_trait = of_trait and item != found[2]
            if not of_trait:
                items.setdefault(item, []).append(line.removeprefix("#[non_exhaustive] "))
    return items


def stable_items():
    """The items that public-api/README.md lists as stable."""
    block = re.search(r"^```text\n(.*?)^```", (RUST / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return block[1].split()


def public_path(path, items):
    """The path by which programs name what has a path, which may be the private one of its definition."""
    item = item_of(path)
    crate, *modules, name = item.split("::")
    if item in items or not is_type(name):
        return path
    same = [it for it in items if it.startswith(f"{crate}::") and it.endswith(f"::{name}")]
    within = [it for it in same if it.split("::")[1:-1] == modules[: it.count("::") - 1]]
    return max(within, key=len, default=item) + path[len(item) :]


def rust():
    """The stable lines of each stable item. A member that names an item which is not stable is not stable, either."""
    stable = stable_items()
    items = {}
    for crate in sorted({item.split("::")[0] for item in stable}):
        items |= rust_items(crate)
    lines = {item: [RUST_PATH.sub(lambda it: public_path(it[0], items), line) for line in items[item]] for item in stable}
    return {item: [line for line in lines[item] if {*map(item_of, RUST_PATH.findall(line))} <= {*stable}] for item in stable}


def go():
    """The exported names of each package."""
    packages = {}
    for line in (ROOT / "go/api.txt").read_text().splitlines():
        package, name = line.split(" ", 1)
        packages.setdefault(package, []).append(name)
    return packages


def python():
    """The functions and classes that the package exports, with their arguments, attributes and bases."""
    names = {}
    for node in ast.parse((PYTHON / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("blkhash."):
            module = node.module.split(".")[1]
            stub = PYTHON / f"{module}.pyi"
            source = stub if stub.exists() else stub.with_suffix(".py")
            defined = {it.name: it for it in ast.parse(source.read_text()).body if isinstance(it, (ast.FunctionDef, ast.ClassDef))}
            names |= {it.name: [*of_python(defined[it.name])] for it in node.names}
    return names


def of_python(node):
    if isinstance(node, ast.FunctionDef):
        return arguments(node)
    return [*(f"is {ast.unparse(base)}" for base in node.bases), *attributes(node)]


def attributes(node):
    for item in node.body:
        if isinstance(item, ast.AnnAssign):
            # More words may come.
            words = re.compile(r"Literal\[(.*?)\]")
            annotation = ast.unparse(item.annotation)
            yield f"{item.target.id}: {words.sub('Literal', annotation)}"
            yield from (f"{item.target.id} = {word}" for it in words.findall(annotation) for word in it.split(", "))
        elif isinstance(item, ast.FunctionDef) and re.match("__|[^_]", item.name):
            if any(isinstance(it, ast.Name) and it.id == "property" for it in item.decorator_list):
                yield f"{item.name}: {ast.unparse(item.returns)}"
            else:
                yield from (f"{item.name}{line}" for line in arguments(item))


def arguments(node):
    """Each argument by name, those without a name that is needed also by place, and the type of the result."""
    places = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
    yield from (f"({at}) {name}" for at, name in enumerate(places))
    yield from (f"({argument.arg}=)" for argument in node.args.kwonlyargs)
    yield f" -> {ast.unparse(node.returns) if node.returns else None}"
