"""Self-contained pages: no script, no network, light and dark."""
import base64
import re
from html import escape
from itertools import groupby

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #c33; --good: #2a7; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .3rem; border-bottom: 1px solid var(--line); } h3 { font-size: 1rem; margin: 1.4rem 0 0; }
h2, h3 { overflow-wrap: anywhere; }
table { display: block; overflow-x: auto; border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top;
padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); }
code { font: 13px/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
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
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">\n'


def formulas_page(data):
    """Every equation beside its line of code, from what report.main writes as JSON."""
    titles = {row["card"]: row["card"].rpartition(".")[2] for row in data["rows"]}
    body, contents = [], []
    for section, rows in groupby(data["rows"], key=lambda row: row["section"]):
        body.append(f"<h2>{escape(section)}</h2>\n")
        contents.append(f"<p><b>{escape(section)}</b>: ")
        for card, rows in groupby(rows, key=lambda row: row["card"]):
            contents.append(f'<a href="#{card}">{escape(titles[card])}</a> ')
            body.append(f'<h3 id="{card}">{escape(card)}</h3>\n')
            body += [_label(row, {title: name for name, title in titles.items() if name != card}) for row in rows]
        contents.append("</p>\n")
    intro = (f"<p>{data['labels']} equations, {data['failed']} failed, measured on {escape(data['device'])} in "
             f"{data['seconds']:.0f} s. Each stands with its source, the lines of code that bear its label, and the "
             "errors measured when this page was made.</p>\n")
    return page("Every formula, where it stands", "".join([intro, *contents, *body]))


def _label(row, titles):
    text, kind = verdict(row["passed"])
    code = "".join(f'<div class="small">{escape(line["path"])}:{line["line"]}</div><pre><code>'
                   f'{_linked(line["text"], titles)}</code></pre>' for line in row["code"])
    measured = "<br>".join(
        f'<span class="{"small" if found["passed"] else "fail"}">{escape(found["check"].replace("_", " "))}, '
        f'{escape(found["method"])}: {escape(found["problem"]) or _number(found["error"])} '
        f'(at most {found["tolerance"]:.0e})</span>' for found in row["measured"])
    faults = "".join(f'<div class="fail">{escape(fault)}</div>' for fault in row["faults"])
    where = f"{row['card']}.{row['label']}"
    return (f'<div class="label" id="{where}"><div><a href="#{where}">[{row["label"]}]</a><br><span class="{kind}">{text}'
            f'</span></div><div><pre>{_linked(row["equation"], titles)}</pre>'
            f'<div class="small">{_linked(row["source"], titles)}</div>{faults}</div>'
            f'<div class="code">{code}{measured}</div></div>\n')


def _linked(text, titles):
    """The text, in which names of other cards lead there."""
    return re.sub(r"\w+", lambda name: f'<a href="#{titles[name[0]]}">{name[0]}</a>' if name[0] in titles else name[0],
                  escape(text))


def _number(value):
    return "infinite" if value is None else "0" if value == 0 else f"{value:.1e}"
