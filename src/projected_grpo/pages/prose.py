"""The Markdown that this pipeline writes, as safe HTML: headings, paragraphs, lists, tables, code, pre, bold.

Everything is escaped first; there is no way to write HTML, and a link becomes its text.
"""

import html
import re
from collections.abc import Mapping

from markupsafe import Markup, escape


def inline(text: str, targets: Mapping[str, str] | None = None) -> Markup:
    """Render `code`, **bold** and [text](address) of one line; the address is dropped.

    Entities are read as the characters they stand for, then everything is escaped once.
    targets: text of a `code` -> id of the element that it links to.
    """
    text = html.unescape(text)
    parts = re.split(r"(`[^`]+`)", text)
    done = []
    for part in parts:
        if len(part) > 2 and part.startswith("`"):
            code = Markup("<code>{}</code>").format(part[1:-1])
            target = (targets or {}).get(part[1:-1])
            done.append(Markup('<a class="n" href="#{}">{}</a>').format(target, code) if target else code)
        else:
            safe = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", str(escape(part)))
            done.append(Markup(re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)))
    return Markup("").join(done)


def split_row(row: str) -> list[str]:
    """Return the cells of a Markdown table's line."""
    cells = re.split(r"(?<!\\)\|", row.strip().strip("|"))
    return [cell.replace("\\|", "|").strip() for cell in cells]


def table(
    header: list[str],
    rows: list[list[str]],
    numeric: list[bool],
    label: str,
    targets: Mapping[str, str] | None = None,
    default: str | None = None,
) -> Markup:
    """Return a scrollable HTML table; `numeric` columns are set to the right.

    targets: text of a row's first cell -> id of the element that its numbers link to; default: that of other rows.
    """
    side = [Markup(' class="num"') if right else "" for right in numeric]
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(s, inline(c)) for s, c in zip(side, header, strict=True)
    )

    def cell(text: str, right: bool, target: str | None) -> Markup:
        shown = inline(text)
        if right and target and re.search(r"\d", text):
            shown = Markup('<a class="n" href="#{}">{}</a>').format(target, shown)
        return Markup("<td{}>{}</td>").format(Markup(' class="num"') if right else "", shown)

    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            inline(row[0]),
            Markup("").join(
                cell(text, i < len(numeric) and numeric[i], (targets or {}).get(row[0], default))
                for i, text in enumerate(row[1:], 1)
            ),
        )
        for row in rows
    )
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(label, head, body)


def render(
    text: str, level: int = 3, targets: Mapping[str, str] | None = None, default: str | None = None
) -> Markup:
    """Render a page; its headings start at `level`; HTML comments and images (shown elsewhere) are left out.

    targets, default: what the numbers of its tables link to, by the first cell of their row (see `table`).
    """
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)$", "", text, flags=re.MULTILINE)
    lines = text.splitlines()
    out: list[Markup] = []
    title = "table"
    i = 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
        elif line.startswith("```"):
            end = next((j for j in range(i + 1, len(lines)) if lines[j].startswith("```")), len(lines))
            out.append(Markup("<pre><code>{}</code></pre>").format("\n".join(lines[i + 1 : end])))
            i = end + 1
        elif line.startswith("<pre>"):
            end = next(
                (j for j in range(i, len(lines)) if lines[j].rstrip().endswith("</pre>")), len(lines) - 1
            )
            raw = "\n".join(lines[i : end + 1]).removeprefix("<pre>").rstrip().removesuffix("</pre>")
            out.append(Markup("<pre>{}</pre>").format(html.unescape(raw)))
            i = end + 1
        elif match := re.match(r"(#+) +(.*)", line):
            n = min(6, level + len(match[1]) - 1)
            title = match[2]
            out.append(Markup("<h{}>{}</h{}>").format(n, inline(title), n))
            i += 1
        elif (
            line.lstrip().startswith("|") and i + 1 < len(lines) and set(lines[i + 1].strip()) <= set("|-: ")
        ):
            end = i + 2
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            numeric = [rule.endswith(":") for rule in split_row(lines[i + 1])]
            rows = [split_row(row) for row in lines[i + 2 : end]]
            out.append(table(split_row(lines[i]), rows, numeric, title, targets, default))
            i = end
        elif re.match(r"\s*([-*]|\d+\.) +", line):
            items = []
            while i < len(lines) and lines[i].strip():
                if match := re.match(r"\s*(?:[-*]|\d+\.) +(.*)", lines[i]):
                    items.append(match[1])
                else:
                    items[-1] += " " + lines[i].strip()
                i += 1
            points = Markup("").join(Markup("<li>{}</li>").format(inline(item)) for item in items)
            out.append(Markup("<ul>{}</ul>").format(points))
        else:
            words = []
            while (
                i < len(lines) and lines[i].strip() and not re.match(r"\||```|#+ |[-*] ", lines[i].lstrip())
            ):
                words.append(lines[i].strip())
                i += 1
            out.append(Markup("<p>{}</p>").format(inline(" ".join(words or [lines[i]]))))
            i += 0 if words else 1
    return Markup("\n").join(out)
