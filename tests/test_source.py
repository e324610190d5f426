"""Rules for the source, each checked over the whole package: words, copies, types, constants."""

import ast
import re
from collections import defaultdict
from functools import cache
from inspect import cleandoc
from pathlib import Path

import widemargin
from widemargin._base import options

ROOT = Path(__file__).parents[1]
PACKAGE = Path(widemargin.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# Pages that people read. The gallery's examples are pages too.
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *(ROOT / "docs").glob("*.rst"),
        *(ROOT / "examples").glob("*.py"),
        *(ROOT / "tools").glob("*.py"),
    ]
)

# Retired words: readers search for the field's own.
RETIRED = re.compile(
    r"\b(machines?|tells?|told|promis(?:e|es|ed|ing)|demands?|demanded|settl(?:e|es|ed|ing)"
    r"|leaps?|crawls?|crawled|lessons?|speaks?|says?|said|asks?|asked|rivals?|rooms?"
    r"|rows? without (?:a )?labels?|(?:un)?labell?ed rows?|training rows?|privileged columns?)\b",
    re.IGNORECASE,
)
ALLOWED = re.compile(
    r"(support[- ]vector|kernel|kernel-based vector)\s+machines?"
    r"|machine[-\s]+(learning|precision|epsilon|readable)|on demand"
    r"|machines? learning|virtual machine",
    re.IGNORECASE,
)
# Words with several meanings; names use the precise terms of the field.
RETIRED_IN_NAMES = re.compile(
    r"(own|found|given|kept|place|part|way|sense|lesson|machine|settle|tell|say|ask|speak)s?"
    r"|settled|told|said|asked"
)
NAMES_ALLOWED = {
    "FileNotFoundError",  # of Python
    "ModuleNotFoundError",  # of Python
    "tell",  # method of Python's files
}
# Names that model files contain.
NAMES_STORED = {"gated/teacher.py": {"PartsGate", "parts"}, "privileged/features.py": {"n_given"}}
# A pair of six equal lines is a copy.
RUN = 6
ANNOTATED = 0.95
MOST_CONSTANTS = 20
LONGEST_BODY = 60


@cache
def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path):
    return path.relative_to(PACKAGE).as_posix()


def retired_words(text):
    return sorted({match[0].lower() for match in RETIRED.finditer(ALLOWED.sub("", text))})


def strings(module):
    """Return the docstrings and messages of a module: all its strings of several words."""
    return [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    ]


def test_docstrings_and_messages_use_the_words_of_the_field():
    found = {name(path): retired_words(" ".join(strings(parse(path)))) for path in FILES}
    assert {path: words for path, words in found.items() if words} == {}


def prose(path):
    """Return the text of a page without the names in backticks, which may be retired ones."""
    return re.sub(r"`+[^`]*`+", "", path.read_text(encoding="utf-8"))


def test_pages_use_the_words_of_the_field():
    found = {path.name: retired_words(prose(path)) for path in PAGES}
    assert {page: words for page, words in found.items() if words} == {}


def test_the_word_check_finds_what_it_looks_for():
    assert retired_words("A machine that tells.") == ["machine", "tells"]
    assert retired_words("It says and asks.") == ["asks", "says"]
    assert retired_words("A support vector machine to machine precision, on demand.") == []


def identifiers(module):
    """Return the names that a module binds, uses, imports or passes arguments to."""
    return {
        value
        for node in ast.walk(module)
        for field in ("id", "arg", "attr", "name", "asname", "rest", "names", "kwd_attrs")
        for value in listed(getattr(node, field, None))
        if isinstance(value, str)
    }


def listed(value):
    return value if isinstance(value, list) else [value]


def words(identifier):
    """Return the words of a name in snake case or camel case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)]


def retired_names(module):
    return sorted(
        identifier
        for identifier in identifiers(module) - NAMES_ALLOWED
        if any(RETIRED_IN_NAMES.fullmatch(word) for word in words(identifier))
    )


def test_names_do_not_contain_retired_words():
    names = {name(path): set(retired_names(parse(path))) for path in FILES}
    assert {path: retired for path, retired in names.items() if retired} == NAMES_STORED


def test_the_name_check_finds_what_it_looks_for():
    source = """
from package import found_vectors as vectors
class KeptRows:
    def tell_all(self, own, partial):
        nonlocal place
        self.parts = call(given=f"{own_rule}")
        match own:
            case {"a": sense, **asked}:
                return partial.partition
"""
    assert retired_names(ast.parse(source)) == [
        "KeptRows", "asked", "found_vectors", "given", "own", "own_rule", "parts", "place",
        "sense", "tell_all",
    ]  # fmt: skip


def docstring_lines(module):
    """Return the numbers of the lines of docstrings."""
    lines = set()
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                lines |= set(range(value.lineno, value.end_lineno + 1))
    return lines


def constructor_lines(module):
    """Return the lines in which constructors list and store their parameters.

    scikit-learn reads the parameters of an estimator from the signature of its constructor, so
    that each class has to list its own.
    """
    lines = set()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            lines |= set(range(node.lineno, node.body[0].lineno))
            lines |= {
                line
                for statement in node.body
                if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name)
                for line in range(statement.lineno, statement.end_lineno + 1)
            }
    return lines


def import_lines(module):
    return {
        line
        for node in ast.walk(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, node.end_lineno + 1)
    }


def code_lines(path):
    """Return the numbers and texts of lines of code that may not be repeated elsewhere."""
    module = parse(path)
    passed = docstring_lines(module) | constructor_lines(module) | import_lines(module)
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        text = line.strip()
        if number not in passed and re.search(r"\w", text) and not text.startswith("#"):
            yield number, text


def test_no_code_is_written_twice():
    places = defaultdict(list)
    for path in FILES:
        lines = list(code_lines(path))
        for start in range(len(lines) - RUN + 1):
            run = tuple(text for _, text in lines[start : start + RUN])
            places[run].append(f"{name(path)}:{lines[start][0]}")
    assert [where for where in places.values() if len(where) > 1] == []


def documented(module):
    """Return the docstrings of a module, with the descriptions of parameters in them."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield node.name, cleandoc(text)


def descriptions(text):
    """Return the numpydoc entries of a docstring that take three lines or more."""
    for match in re.finditer(r"(?m)^\w[^\n]* : [^\n]+\n(?:(?:    [^\n]*)?\n?(?!\w))+", text + "\n"):
        entry = match[0].strip()
        if entry.count("\n") >= 2:
            yield entry


def test_descriptions_of_shared_parameters_are_written_once():
    places = defaultdict(list)
    for path in FILES:
        for owner, text in documented(parse(path)):
            for entry in descriptions(text):
                places[entry].append(f"{name(path)} {owner}: {entry.splitlines()[0]}")
    assert [where for where in places.values() if len(where) > 1] == []


def public_functions(path):
    """Return the functions of a module, and the methods of its classes, without an underscore."""
    module = parse(path)
    if any(part.startswith("_") and part != "__init__.py" for part in path.parts[-2:]):
        return
    bodies = [module.body, *(n.body for n in module.body if isinstance(n, ast.ClassDef))]
    for body in bodies:
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield node


def is_annotated(function):
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return function.returns is not None and all(
        argument.annotation is not None
        for argument in arguments
        if argument.arg not in ("self", "cls")
    )


def test_public_functions_are_annotated():
    functions = [(name(path), node) for path in FILES for node in public_functions(path)]
    missing = [f"{path}:{node.name}" for path, node in functions if not is_annotated(node)]
    assert len(missing) <= (1 - ANNOTATED) * len(functions), missing


def tuning_constants(path):
    """Return the module-level names that are bound to numbers."""
    for node in parse(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (f"{name(path)}:{ast.unparse(target)}" for target in targets)


def is_number(node):
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Call(func=function, args=[argument]):
            return ast.unparse(function) != "range" and is_number(argument)
        case ast.Tuple(elts=[_, *_] as elements):
            return all(is_number(element) for element in elements)
    return False


def test_tuning_constants_are_documented_options():
    constants = [c for path in FILES for c in tuning_constants(path)]
    assert len(constants) <= MOST_CONSTANTS, constants


def test_options_of_the_same_name_have_the_same_value():
    values = defaultdict(set)
    for group in vars(options).values():
        for field, value in vars(group).items() if isinstance(group, type) else ():
            if not field.startswith("__"):
                values[field].add(value)
    assert {field: found for field, found in values.items() if len(found) > 1} == {}


def test_functions_are_short():
    long = [
        f"{name(path)}:{node.name}"
        for path in FILES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno - body_start(node) + 1 > LONGEST_BODY
    ]
    assert long == []


def body_start(function):
    """Return the first line of a function's body after its docstring."""
    first = function.body[0]
    has_docstring = ast.get_docstring(function) is not None and len(function.body) > 1
    return (function.body[1] if has_docstring else first).lineno


PRIVATE_ATTRIBUTES = re.compile(
    r"\b_(score_func|get_kernel_params|validate_params|init_callback_context|skl_callbacks)$"
)


def private_names_of_scikit_learn(module):
    """Return imports of private modules and names of scikit-learn, and uses of its attributes."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            yield from (part for part in parts if re.match("_[a-z]", part))
        elif isinstance(node, ast.Attribute) and PRIVATE_ATTRIBUTES.match(node.attr):
            yield node.attr


def test_private_names_of_scikit_learn_are_in_one_file():
    # Converters write the fitted attributes of scikit-learn's classes.
    found = {name(path): sorted(private_names_of_scikit_learn(parse(path))) for path in FILES}
    assert {path for path, names in found.items() if names} == {"_base/sklearn_compat.py"}


def test_options_are_documented_with_the_benchmark_that_measures_them():
    for group in parse(PACKAGE / "_base/options.py").body:
        if not isinstance(group, ast.ClassDef):
            continue
        scripts = re.findall(r"benchmarks/\w+\.py", ast.get_docstring(group))
        assert scripts or "no benchmark" in ast.get_docstring(group), group.name
        assert all((ROOT / script).exists() for script in scripts), group.name
        # Several values may share a description, which follows the last one.
        assert isinstance(group.body[-1], ast.Expr), group.name


def test_every_option_is_used():
    read = {
        node.attr
        for path in FILES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    unused = {
        field
        for group in vars(options).values()
        if isinstance(group, type)
        for field in vars(group)
        if not field.startswith("__") and field not in read
    }
    assert unused == set()


def test_other_constants_have_a_comment():
    uncommented = []
    for path in FILES:
        lines = path.read_text(encoding="utf-8").split("\n")
        for constant in tuning_constants(path):
            target = constant.rpartition(":")[2].strip("()")
            number = next(k for k, line in enumerate(lines) if line.startswith(target + " = "))
            if "#" not in lines[number - 1] + lines[number]:
                uncommented.append(constant)
    assert uncommented == []
