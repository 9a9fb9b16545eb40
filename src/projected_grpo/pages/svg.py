"""A figure's SVG file as a part of a page: small, in the page's colours, with ids of its own."""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from projected_grpo.pages.style import VARIABLES

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


def inline(text: str, name: str, label: str) -> str:
    """Return an SVG file's text for use inside a page: unique ids, theme colours, an accessible label.

    Matplotlib names every group and repeats every style. Here a group without attributes is dissolved, equal styles
    become one class, and coordinates have a tenth of a point: half the text, the same picture.
    """
    root = ElementTree.fromstring(text)
    width, height = root.get("viewBox").split()[2:]
    for part in root.findall(f"{SVG}metadata"):
        root.remove(part)
    for part in [part for part in root.iter() if part.get("style") == "fill: #ffffff"][:1]:
        part.set("style", "fill: none")  # the page's own background
    ids = {
        old: f"{name}-{new}"
        for new, old in enumerate(dict.fromkeys(re.findall(r'(?:url\(|href=")#([^")]+)', text)))
    }
    classes: dict[str, str] = {}
    for part in root.iter():
        part.tag = part.tag.removeprefix(SVG)
        part.attrib = _short(part.attrib, ids, classes)
    _dissolve(root)
    rules = Element("style")
    rules.text = "".join(f"#{name} .{short}{{{style}}}" for style, short in classes.items())
    root.insert(0, rules)
    # Never much larger than drawn: its letters are as large as the page's.
    own = {"id": name, "viewBox": f"0 0 {width} {height}", "style": f"max-width: {float(width) * 1.75:.0f}px"}
    root.attrib = {**own, "role": "img", "aria-label": label, "xmlns": SVG.strip("{}")}
    drawn = ElementTree.tostring(root, encoding="unicode")
    for colour, variable in VARIABLES.items():
        drawn = drawn.replace(colour, f"var(--{variable})")
    return drawn


def _short(attributes: dict[str, str], ids: dict[str, str], classes: dict[str, str]) -> dict[str, str]:
    """Return a tag's attributes: ids that something points to, a class for the style, one digit after the point."""
    kept = {}
    for key, value in attributes.items():
        if key != "style":
            value = re.sub(r"(\d)(?:\.0|(\.[1-9]))\d*", r"\1\2", value)
        value = re.sub(r"\s+", " ", value).strip()
        if key == "id":
            kept |= {"id": ids[value]} if value in ids else {}
        elif key == "style":
            style = value.replace("font-family: sans-serif; ", "").replace(": ", ":").replace("; ", ";")
            kept["class"] = classes.setdefault(style, f"s{len(classes)}")
        elif key == "d":
            kept["d"] = re.sub(r" ?([A-Za-z]) ?", r"\1", value)
        elif key in (LINK, "href"):
            # a heat map is an image that the link itself holds
            kept["href"] = f"#{ids[value[1:]]}" if value.startswith("#") else value.replace(" ", "")
        else:
            kept[key] = re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{ids[found[1]]})", value)
    return kept


def _dissolve(part: Element) -> None:
    """Put what stands in a group without attributes in the group's place, all the way down."""
    children = []
    for child in part:
        _dissolve(child)
        child.tail = None
        children += child if child.tag == "g" and not child.attrib else [child]
    part[:] = children
    if not (part.text or "").strip():
        part.text = None
