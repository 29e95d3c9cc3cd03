"""A run's record in the form of the registry of deployments of differential privacy, and the words
of the data's owner that it needs.
"""

import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError, ParameterError
from ..privacy.catalogue import row_to_quote
from ..privacy.meaning import in_words
from ..util.atomic import atomic_write
from ..util.files import check_path, damage_named
from ..util.text import upper_text
from .brief import NEIGHBOURS, _success, asked, unit_of
from .checkpoint import differences as unequal

NOT_STATED = "not stated"
LISTS = ("curators", "authors")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
OWNER = {  # what the owner of the data is asked, who alone knows it
    "name": "name of the model",
    "curators": "who publishes it: a list of names",
    "description": "what it is, in a sentence",
    "use": "what it is for",
    "region": "where the people of the data live, or whose law applies",
    "sector": f"one of {', '.join(SECTORS)}",
    "unit": "what one row (or one person) of the data is, such as: a visit to a hospital",
    "domain": "which data sets could have been in the place of this one",
    "raw_data": "who holds the raw data, and who can read them",
    "actors": "who may see the model, and what they are trusted with",
    "plans": "further releases from these data that are planned",
    "preparation": "what was computed from the data before this run, and what it cost",
    "other_runs": "how many other runs on these data you know of, and what they cost",
    "justification": "why this epsilon and these settings",
    "sources": "where more is written about it",
    "authors": "who answers here: a list of names",
}


def as_about(given: Any) -> dict[str, Any]:
    """The owner's words, {key of OWNER: text, or list of texts}, from a dictionary or a TOML file;
    empty ones are left out.

    Where there is no such file, writes one with the questions, and raises ParameterError, as for
    keys or values that are none.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        check_path(about=given)
        path = Path(given)
        if not path.exists():
            if path.suffix != ".toml":
                raise DataError(f"{path}: no such file; a new NAME.toml gets the questions")
            with atomic_write(path) as file:
                for key, question in OWNER.items():
                    empty = "[]" if key in LISTS else '""'
                    file.write(f"# {question}\n{key} = {empty}\n")
            raise ParameterError(f"{path} was not there; answer the questions that are there now")
        with damage_named(path, DataError):
            given = tomllib.loads(path.read_text(encoding="utf-8"))
    for key, value in given.items():
        texts = value if key in LISTS else [value]
        if key not in OWNER or not isinstance(texts, list) or not {*map(type, texts)} <= {str}:
            raise ParameterError(
                f"about: expected texts (lists of texts for {' and '.join(LISTS)}) under "
                f"{', '.join(OWNER)}, got {key} = {value!r:.80}"
            )
    if given.get("sector", "") not in ("", *SECTORS):
        raise ParameterError(f"about: expected sector to be {OWNER['sector']}")
    return {key: value for key, value in given.items() if value}


def fields_of(result: dict[str, Any]) -> Iterator[tuple[str, str, int, Any, str]]:
    """Yield (section, field, the registry's tier, 0 where it may be missing, what the run says or
    None, keys of the owner's words on it).
    """
    settings, versions, choices = (result[key] for key in ("settings", "versions", "choices"))
    unit, quoted = unit_of(result), row_to_quote(result["epsilon"])
    change = NEIGHBOURS[result["relation"]][0]
    prepared = "; ".join(each["what"] for each in settings["setup"]) or "nothing"
    chosen = ". ".join(f"{what[:1].upper()}{what[1:]}: {how}" for what, how in choices.items())
    before = f"Charged before the first step: {prepared}. {chosen or 'No choice is recorded'}."
    charged = (
        f"Releases before the first step: {result['setup_charged']}; steps: "
        f"{result['steps_charged']}"
    )
    open_facts = [*result["disclosed"], *result["public"], *result["not_private"]]
    averaged = f", then averaged (decay {settings['average']:g})" if settings["average"] else ""
    best = ", the best on public validation data" if result["best_of_measured"] else ""
    shared = ""
    if result.get("shared_ledger"):
        together = upper_text(result["shared_ledger"])
        shared = f" All fits that share its ledger, this one among them: epsilon {together}."
    yield "basic", "name", 1, None, "name"
    yield "basic", "data_curators", 1, None, "curators"
    yield "basic", "intended_use", 1, None, "use"
    yield "basic", "data_product_type", 1, "Machine learning model", ""
    yield "basic", "data_product_region", 1, None, "region"
    yield "basic", "description", 1, None, "description"
    yield "basic", "publication_date", 1, result["day"], ""
    yield "basic", "data_product_sector", 0, None, "sector"
    parameters = details = None
    if quoted is not None:
        parameters = {
            "epsilon": float(upper_text(result["epsilon"][quoted]["upper"], 6)),
            "delta": result["delta"],
        }
        upper, found = result["epsilon"][quoted]["upper"], NEIGHBOURS[result["relation"]][2]
        reached = _success(result, upper, found.format(unit.name))
        told = [(asked(result) or "").replace("**", ""), reached]
        if result["meaning"]:
            told[1] = in_words(result["meaning"], others=unit.rows)
        details = " ".join([f"A certified bound, by {quoted}.", *filter(None, told)])
    yield "dp_variant", "variant_name", 2, quoted and "Approximate DP", ""
    yield "dp_variant", "data_domain", 3, None, "domain"
    yield "dp_variant", "unprotected_quantities", 3, f"{'; '.join(open_facts) or 'none'}.", ""
    yield "privacy_loss", "privacy_unit", 2, f"One {unit.whole}.", "unit"
    relation = f"{result['relation'].replace('_', '-')}: one {unit.whole}, {change}."
    yield "privacy_loss", "privacy_unit_details", 3, relation, ""
    yield "privacy_loss", "privacy_parameters", 2, parameters, ""
    yield "privacy_loss", "privacy_parameters_details", 3, details, ""
    trusted = "Whoever ran the program, and their machine, saw the raw data."
    yield "deployment_model", "model_name", 2, "Central", ""
    yield "deployment_model", "model_name_details", 0, trusted, "raw_data"
    yield "deployment_model", "actors", 3, None, "actors"
    yield "deployment_model", "release_type", 2, "One release", ""
    yield "deployment_model", "release_type_details", 0, None, "plans"
    yield "deployment_model", "data_source_type", 2, "Static", ""
    yield "deployment_model", "access_type", 2, "Non-interactive", ""
    after = f"Weights by {settings['optimizer']} from noisy sums{averaged}{best}."
    yield "accounting", "post_processing", 3, after, ""
    composed = f"{charged}; composed by {quoted or result['accountant']}.{shared}"
    yield "accounting", "composition", 3, composed, "other_runs"
    yield (
        "implementation",
        "preprocessing_and_hyperparameter_tuning",
        3,
        before,
        "preparation other_runs",
    )
    warning = ""
    if quoted is None:
        warning = "Not private: something was released without noise. "
    elif result["reproducible"]:
        warning = "Not for release: whoever knows the seed of this run can compute its noise. "
    mechanism = (
        f"{warning}Gaussian noise on sums of clipped gradients (Abadi et al. 2016, Algorithm 1), "
        f"by minidp {versions['minidp']}, commit {result['commit'] or 'unknown'}; "
        f"{result['sampler']}, {result['arithmetic']} arithmetic, random numbers by "
        f"{result['generator']}; no measures against timing or against other programs on the "
        "machine."
    )
    yield "implementation", "mechanisms", 3, mechanism, "raw_data"
    yield "implementation", "justification", 3, None, "justification"
    yield "administrative", "sources", 0, None, "sources"
    yield "administrative", "registry_authors", 1, None, "authors"


def entries(result: dict[str, Any]) -> Iterator[tuple[str, str, int, Any, bool]]:
    """Yield (section, field, tier, value, whether it is the owner's alone): the run's words and the
    owner's, which are marked where both speak; None where nobody does.
    """
    for section, field, tier, value, keys in fields_of(result):
        words = [result["about"][key] for key in keys.split() if key in result["about"]]
        if words and value is not None:
            value = " ".join([value, *(f"The owner says: {each}." for each in words)])
        owned = bool(words) and value is None
        yield section, field, tier, words[0] if owned else value, owned


def record(result: dict[str, Any]) -> dict[str, Any]:
    """The run's record, as the registry's schema has it."""
    deployment: dict[str, Any] = {}
    for section, field, tier, value, _ in entries(result):
        if value is None and tier == 1:
            value = [NOT_STATED] if field in ("data_curators", "registry_authors") else NOT_STATED
        if value is not None:
            deployment.setdefault(section, {})[field] = value
    return {
        "url_slug": f"minidp_{result['ledger_sha256'][:12]}",
        "status": "Draft",
        "tier": _tier(result, deployment),
        "deployment": deployment,
    }


def missing(found: dict[str, Any]) -> list[str]:
    """The fields of a record that hold NOT_STATED."""
    parts = found["deployment"].values()
    return [key for part in parts for key, value in part.items() if NOT_STATED in (value, *value)]


def as_yaml(found: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the lines of a record; each text is quoted, and dates are texts."""
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from as_yaml(value, f"{indent}  ")
        elif isinstance(value, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {_scalar(each)}" for each in value)
        else:
            yield f"{indent}{key}: {_scalar(value)}"


def differences(result: dict[str, Any], path: Any) -> Iterator[str]:
    """Yield what a record in a file says other than the run; what nobody stated may stand there,
    and any status, which is the owner's.
    """
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; leave out --check to write it") from None
    if not text.strip():
        raise DataError(f"{path}: empty; leave out --check, with --force, to write it")
    try:
        found = yaml.safe_load(text)
        if not isinstance(found, dict) or not {"tier", "url_slug", "deployment"} <= set(found):
            raise DataError("expected the keys url_slug, status, tier and deployment")
        made = {**record(result), "tier": _tier(result, found["deployment"])}
        for where, said, should in unequal(found, made):
            free = should in (None, NOT_STATED, [NOT_STATED]) or where == "status"
            if not free or where == "deployment.privacy_loss.privacy_parameters":
                yield f"{where} is {_apart(said, should)} and should be {_apart(should, said)}"
    except (DataError, yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a record of a deployment ({error})") from error


def _apart(value, other):
    """Eighty characters of a value, of a text from a little before the place where it differs."""
    text, other = repr(value), repr(other)
    start = max(0, len(os.path.commonprefix([text, other])) - 20)
    return f"{'...' if start else ''}{text[start : start + 80]}"


def _tier(result, deployment):
    """The highest tier whose fields are all stated."""
    lacking = [
        tier
        for section, field, tier, *_ in fields_of(result)
        if tier and deployment.get(section, {}).get(field, NOT_STATED) in (NOT_STATED, [NOT_STATED])
    ]
    return max(1, min(lacking, default=4) - 1)


def _scalar(value):
    if isinstance(value, float) and math.isfinite(value):
        text = repr(value)  # readers of YAML want a point in every float
        return text if "." in text else text.replace("e", ".0e")
    return json.dumps(value, ensure_ascii=False)
