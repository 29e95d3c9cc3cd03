"""Self-contained pages: no script, no network, light and dark."""
from html import escape
from itertools import groupby

from .mathml import mathml

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #c33; --good: #2a7; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top;
padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); }
code { font: 13px/1.45 ui-monospace, monospace; overflow-wrap: anywhere; } math { font-size: 1.05rem; }
.label { display: grid; grid-template-columns: 3.2rem minmax(0, 1fr) minmax(0, 1fr); gap: .2rem 1.2rem;
padding: .6rem 0; border-bottom: 1px solid var(--line); }
.small { overflow-wrap: anywhere; font-size: .85rem; opacity: .8; } .ok { color: var(--good); } .fail { color: var(--bad); font-weight: bold; }
img { max-width: 100%; background: #fff; } pre { white-space: pre-wrap; margin: 0; }
@media (max-width: 50rem) { .label { grid-template-columns: 3.2rem minmax(0, 1fr); } .label > .code { grid-column: 2; } }
"""


def page(title, body):
    """A whole page around `body`, which is HTML already."""
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
            f"<body><h1>{escape(title)}</h1>\n{body}</body></html>\n")


def table(head, rows):
    """Rows of cells; a cell is text, or (text, class)."""
    def cell(value):
        text, kind = value if isinstance(value, tuple) else (value, "")
        return f'<td class="{kind}">{escape(str(text))}</td>' if kind else f"<td>{escape(str(text))}</td>"

    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = "".join(f"<tr>{''.join(map(cell, row))}</tr>\n" for row in rows)
    return f"<table><tr>{titles}</tr>\n{lines}</table>\n"


def verdict(passed):
    """A cell that says ok or FAIL in its colour."""
    return ("ok", "ok") if passed else ("FAIL", "fail")


def picture(png, text):
    """An image inside the page, from the bytes of a PNG."""
    import base64

    return f'<img alt="{escape(text)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">\n'


def formulas_page(data):
    """The page of tools/audit_gradients.py, from what it writes as JSON."""
    body = [f"<p>{data['labels']} equations, {data['failed']} failed, measured on {escape(data['device'])} in "
            f"{data['seconds']:.0f} s. Each stands with the line of code that bears it, its source, "
            "and the errors measured when this page was made.</p>\n"]
    for card, rows in groupby(data["rows"], key=lambda row: row["card"]):
        body.append(f"<h2>{escape(card)}</h2>\n")
        body += [_label(row) for row in rows]
    return page("Every formula, where it stands", "".join(body))


def _label(row):
    text, kind = verdict(row["passed"])
    code = "".join(f'<div class="small">{escape(line["path"])}:{line["line"]}</div><pre><code>{escape(line["text"])}'
                   "</code></pre>" for line in row["code"])
    measured = "<br>".join(
        f'<span class="{"small" if _good(found) else "fail"}">{escape(found["method"])}: '
        f'{escape(found["problem"]) or _number(found["error"])} (at most {found["tolerance"]:.0e})</span>'
        for found in row["measured"])
    faults = "".join(f'<div class="fail">{escape(fault)}</div>' for fault in row["faults"])
    return (f'<div class="label"><div>[{row["label"]}]<br><span class="{kind}">{text}</span></div>'
            f'<div>{mathml(row["equation"])}<div class="small">{escape(row["source"])}</div>{faults}</div>'
            f'<div class="code">{code}{measured}</div></div>\n')


def _good(found):
    return not found["problem"] and found["error"] <= found["tolerance"]


def _number(value):
    return "0" if value == 0 else f"{value:.1e}"
