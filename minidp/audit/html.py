"""Self-contained pages: no script, no network, light and dark, wide, narrow and on paper."""

import re
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from .typeset import mathml

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def page(title, body):
    """A whole page around `body`, which is HTML already."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta '
        f'charset="utf-8"/><title>{escape(title)}</title><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"/><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>\n{body}</body></html>\n"
    )


class Cell(NamedTuple):
    """A cell of a table with a class of its own."""

    text: str
    kind: str


def table(head, rows):
    """A table from rows of cells; a cell is text or a Cell. On a narrow screen each cell shows its
    title.
    """

    def cell(value, title):
        text, kind = value if isinstance(value, Cell) else (value, "")
        start = f'<td class="{kind}"' if kind else "<td"
        if title:
            start += f' data-head="{escape(title)}"'
        return f"{start}>{escape(str(text))}</td>"

    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = "".join(f"<tr>{''.join(map(cell, row, head))}</tr>\n" for row in rows)
    return f'<table class="fold"><tr>{titles}</tr>\n{lines}</table>\n'


def verdict(passed):
    """A cell that says ok or FAIL in its colour."""
    return Cell("ok", "ok") if passed else Cell("FAIL", "fail")


def run_section(run):
    """A run's folder, as `commands.checking` verified it: its release, code, cost, and the
    questions about it.
    """
    made, now = run["made_by"], run["verified_by"]
    facts = [(what, made.get(what), now.get(what)) for what in dict.fromkeys((*made, *now))]
    cost = (
        f"epsilon at delta {run['delta']} by",
        "lower",
        "estimate",
        "upper",
        "kind",
        "what it is",
    )
    return "".join(
        [
            f"<p>{escape(run['text'])} Verified {escape(run['verified'])}.</p>\n",
            *_statement(run["statement"]),
            "<h3>By which code</h3>",
            table(("", "the run", "this verification"), facts),
            f"<h3>At which cost</h3>{table(cost, run['bounds'])}" if run["bounds"] else "",
            "<h3>Verified</h3>",
            table(
                ("", "question", "answer"),
                [(verdict(good), *asked) for good, *asked in run["findings"]],
            ),
        ]
    )


def _statement(text):
    """The Markdown of a privacy statement as HTML: headings, tables, lists, bold and code."""
    marked = re.sub(
        r"`(.+?)`", r"<code>\1</code>", re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text.strip()))
    )
    for block in filter(None, marked.split("\n\n")):
        lines = block.split("\n")
        if block.startswith("#"):
            yield f"<h3>{block.lstrip('# ')}</h3>\n"
        elif block.startswith("|"):
            rows = (
                line.strip()[1:-1].replace("|", "</td><td>")
                for line in lines
                if not line.startswith("| ---")
            )
            yield f"<table>{''.join(f'<tr><td>{row}</td></tr>' for row in rows)}</table>\n"
        elif block.startswith("- "):
            items = re.split(r"^- ", block, flags=re.M)[1:]
            yield f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>\n"
        else:
            yield f"<p>{block}</p>\n"


def formulas_page(data):
    """Every equation beside its line of code, from the result of report.measure, after Algorithm 1
    and a run.
    """
    run, sections = data["run"], []
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    if run:
        sections.append(("This run", "", f"<p>{escape(run['run'])}</p>{run_section(run)}"))
    if data["algorithm"]:
        by_place = {f"{row['card']}.{row['label']}": row for row in data["rows"]}
        text = (
            "<p>Each line of Algorithm 1 of Abadi et al. 2016, and the lines of code that carry it "
            "out, found by their labels.</p>\n"
        )
        for number, line in enumerate(data["algorithm"], 1):
            text += _step(number, line, by_place)
        sections.append(("Algorithm 1, as it runs", "", text))
    for title, rows in groupby(data["rows"], key=lambda row: row["section"]):
        links = text = ""
        for card, rows in groupby(rows, key=lambda row: row["card"]):
            name = _short(card)
            links += f' <a href="#{card}">{name}</a>'
            text += f'<h3 id="{card}">{name} <small>{escape(card)}</small></h3>\n'
            text += "".join(map(_label, rows))
        sections.append((title, links, text))
    contents = body = ""
    for title, links, text in sections:
        place = re.sub(r"\W+", "-", title.lower())
        contents += f'<p><a href="#{place}"><b>{escape(title)}</b></a>{links}</p>\n'
        body += f'<h2 id="{place}">{escape(title)}</h2>\n{text}'
    intro = (
        f"<p>{data['labels']} equations, {data['failed']} failed, measured on "
        f"{escape(data['device'])} in {data['seconds']:.0f} s, {data['made']}, {escape(versions)}. "
        "Each stands with its source, the lines of code that bear its label, and the errors "
        "measured when this page was made, each beside the most that is allowed. What agrees was "
        "measured at random points: it shows that code and equation are "
        "the same, not that a cited theorem holds.</p>\n"
    )
    contents = f'<nav><h2 id="contents">Contents</h2>\n{contents}</nav>\n'
    return page("Every formula, where it stands", intro + contents + body)


def _short(card):
    return escape(card.rpartition(".")[2])


def _step(number, line, rows):
    """One line of Algorithm 1."""
    places = ""
    for place in line["places"]:
        row = rows[place]
        places += (
            f'<div class="error"><a href="#{place}">{_short(row["card"])} '
            f"[{row['label']}]</a> {_code(row)}</div>"
        )
    run = f'<div class="small">This run: {escape(line["run"])}</div>' if line["run"] else ""
    return (
        f'<div class="label" id="line{number}"><div><a '
        f'href="#line{number}">{number}</a></div><div><b>{escape(line["line"])}</b>'
        f"<pre>{escape(line['says'])}</pre>{run}</div>"
        f'<div class="code">{places}</div></div>\n'
    )


def _label(row):
    text, kind = verdict(row["passed"])
    found = filter(None, (*row["faults"], row["suspect"]))
    faults = "".join(f'<div class="fail">{escape(fault)}</div>' for fault in found)
    errors = "".join(map(_error, row["measured"]))
    where = f"{row['card']}.{row['label']}"
    return (
        f'<div class="label" id="{escape(where)}"><div><a '
        f'href="#{escape(where)}">[{row["label"]}]</a> <span '
        f'class="{kind}">{text}</span></div><div><div '
        f'class="small">{escape(row["heading"])}</div>'
        f"{_equation(row)}"
        f'<div class="small">{escape(row["source"])}</div>{faults}</div>'
        f'<div class="code">{_code(row)}{errors}</div></div>\n'
    )


def _equation(row):
    """The equation as a paper prints it if it is evaluated, otherwise as it is written."""
    if not row["in_words"]:
        return f'<div class="equation">{mathml(row["equation"])}</div>'
    words = f'<div class="small">in words: {row["in_words"]}</div>'
    return f"<pre>{escape(row['equation'])}</pre>{words}"


def _code(row):
    return "".join(
        f'<div class="small">{escape(line["path"])}:{line["line"]}</div><pre><code>'
        f"{escape(re.sub(' +# ', '  # ', line['text']))}</code></pre>"
        for line in row["code"]
    )


def _error(found):
    """One measurement, as the terminal prints it."""
    word, kind = verdict(found["passed"])
    return f'<div class="error {kind}"><b>{word}</b> {escape(found["text"])}</div>'
