"""Prepare the SVG of a chart for a page: cleaned, with unique ids and a text alternative. Pure.

Only listed elements, attributes, style properties and kinds of references are kept; all else (metadata,
styles that would affect the page, scripts, links) is removed. A chart is a file in somebody's folder, and
somebody else may open the page.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from common.errors import StoreError

ELEMENTS = frozenset(
    {
        "svg", "g", "defs", "path", "use", "clipPath", "rect", "circle", "ellipse", "line", "polyline",
        "polygon", "text", "tspan", "image", "marker", "pattern", "linearGradient", "radialGradient", "stop",
        "mask",
    }
)  # fmt: skip
PAINT = frozenset(
    {
        "fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
        "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "opacity", "clip-path",
        "clip-rule", "mask", "marker-start", "marker-mid", "marker-end", "stop-color", "stop-opacity",
        "font-size", "font-weight", "font-style", "font-stretch", "font-variant", "text-anchor",
        "image-rendering",
    }
)  # fmt: skip
"""Attributes of presentation, which are properties of a style too."""
ATTRIBUTES = PAINT | {
    "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "points", "transform",
    "width", "height", "viewBox", "preserveAspectRatio", "offset", "refX", "refY", "markerWidth",
    "markerHeight", "markerUnits", "orient", "patternUnits", "patternTransform", "patternContentUnits",
    "gradientUnits", "gradientTransform", "clipPathUnits", "maskUnits", "maskContentUnits", "rotate",
}  # fmt: skip
MAX_BYTES = 1 << 26
MAX_DEPTH = 64
_VALUE = re.compile(r"[-+#%.,()\w\s]*", re.ASCII)
"""Numbers, names and colours of attributes. No backslash, which hides letters."""
_ID = re.compile(r"[-.\w]+")
_PICTURE = re.compile(r"data:image/(?:png|jpeg);base64,[A-Za-z0-9+/=\s]*")
_NAMESPACE = re.compile(r"\{[^}]*\}")
_URL = re.compile(r"url\(\s*(['\"]?)(.*?)\1\s*\)")
_LONG_FRACTION = re.compile(r"(\.\d\d)\d+")
_GEOMETRY = frozenset({"d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "points", "transform"})
_SIZE = re.compile(r"font-size:\s*([0-9.]+)")


def inline(svg: str, prefix: str, title: str, description: str) -> str:
    """Return `svg` as an element for HTML, with `title` and `description` for screen readers.

    Every id gets `prefix`, which must be unique in the page. Raises StoreError for a text that is not SVG.
    """
    try:
        if "<!ENTITY" in svg:
            raise ET.ParseError("it defines entities")
        root = ET.fromstring(svg)
        _check_depth(root)
    except ET.ParseError as error:
        raise StoreError(
            f"reading the chart {prefix}: it is not whole SVG ({error}); draw it again"
        ) from error
    if _local(root.tag) != "svg":
        raise StoreError(f"reading the chart {prefix}: it is {_local(root.tag)}, not SVG; draw it again")
    headline = _headline(root) or title
    clean = _clean(root, prefix, _targets(root))
    view = clean.get("viewBox", "")
    clean.attrib.clear()
    clean.attrib |= {
        "viewBox": view,
        "class": "chart",
        "role": "img",
        "aria-labelledby": f"{prefix}-title {prefix}-desc",
    }
    for tag, text in (("desc", f"{title}. {description}"), ("title", headline)):
        named = Element(tag, {"id": f"{prefix}-{tag}"})
        named.text = text
        clean.insert(0, named)
    return ET.tostring(clean, encoding="unicode")


def _check_depth(root: Element) -> None:
    """Raise ParseError for elements nested deeper than any chart's, before a recursion meets them."""
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ET.ParseError(f"its elements are nested {MAX_DEPTH} deep")
        level = [child for element in level for child in element]


def _local(tag: str) -> str:
    return _NAMESPACE.sub("", tag)


def _headline(root: Element) -> str:
    """Return the text in the largest font, which is the finding of a chart."""
    texts = [element for element in root.iter() if _local(element.tag) == "text"]
    sizes = {id(text): _size(text) for text in texts}
    most = max(sizes.values(), default=0.0)
    return " ".join(" ".join("".join(t.itertext()).split()) for t in texts if sizes[id(t)] == most > 0)


def _size(text: Element) -> float:
    found = _SIZE.search(text.get("style", ""))
    return float(found[1]) if found else 0.0


def _targets(root: Element) -> set[str]:
    """Return the ids that something refers to; the others are not needed."""
    used: set[str] = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            if _local(name) == "href" and value.startswith("#"):
                used.add(value[1:])
            used.update(found[2][1:] for found in _URL.finditer(value) if found[2].startswith("#"))
    return used


def _clean(element: Element, prefix: str, targets: set[str]) -> Element:
    """Return a copy of the elements that may be shown, without namespaces."""
    copy = Element(_local(element.tag))
    for name, value in element.attrib.items():
        kept = _attribute(_local(name), value, prefix, targets)
        if kept is not None:
            copy.set(_local(name), kept)
    drawn = _local(element.tag) in {"text", "tspan"}
    copy.text = element.text if drawn else None
    for child in element:
        if _local(child.tag) in ELEMENTS:
            cleaned = _clean(child, prefix, targets)
            cleaned.tail = child.tail if drawn else None
            copy.append(cleaned)
    return copy


def _attribute(name: str, value: str, prefix: str, targets: set[str]) -> str | None:
    """Return the value of an attribute in the page; None to leave it out."""
    if name == "id":
        return f"{prefix}-{value}" if value in targets and _ID.fullmatch(value) else None
    if name == "href":
        return _href(value, prefix)
    if name == "style":
        return _style(value, prefix) or None
    if name not in ATTRIBUTES:
        return None
    kept = _paint(value, prefix)
    if kept is not None and name in _GEOMETRY:
        return _LONG_FRACTION.sub(r"\1", " ".join(kept.split()))
    return kept


def _style(text: str, prefix: str) -> str:
    """Return the properties that may be kept, as in the chart; fonts are the page's."""
    kept = []
    for declaration in text.split(";"):
        name, _, value = declaration.partition(":")
        painted = _paint(value, prefix) if name.strip() in PAINT else None
        if painted is not None:
            kept.append(f"{name.strip()}:{painted}")
    return "; ".join(kept)


def _paint(value: str, prefix: str) -> str | None:
    """Return a value with references to this chart's ids; None for any other reference or character."""
    rest = _URL.sub("", value)
    inner = [found[2] for found in _URL.finditer(value)]
    if not _VALUE.fullmatch(rest) or "url" in rest.lower() or not all(map(_is_inner, inner)):
        return None
    return _URL.sub(lambda found: f"url(#{prefix}-{found[2][1:]})", value)


def _is_inner(reference: str) -> bool:
    return reference.startswith("#") and _ID.fullmatch(reference[1:]) is not None


def _href(value: str, prefix: str) -> str | None:
    """Keep references within the chart and embedded pictures; remove all that would be fetched."""
    if _is_inner(value):
        return f"#{prefix}-{value[1:]}"
    return value if _PICTURE.fullmatch(value) else None
