"""The colours of pages, figures and tables: Okabe and Ito's, safe for colour-blind readers.

They are darkened or lightened so that text in them is readable; marks differ in shape, too.
"""

LIGHT = {
    "page": "#fff",
    "ink": "#1b1f24",
    "soft": "#5b6570",
    "line": "#d5dae0",
    "card": "#f6f8fa",
    "better": "#0072b2",
    "worse": "#c2410c",
    "unclear": "#626a73",
    "main": "#0072b2",
    "bridge": "#8a5a00",
    "third": "#006d52",
    "fourth": "#9c3f74",
    "fifth": "#7a5c00",
}
DARK = {
    "page": "#14171a",
    "ink": "#e8eaed",
    "soft": "#a4adb7",
    "line": "#39414a",
    "card": "#1d2226",
    "better": "#56b4e9",
    "worse": "#f0915a",
    "unclear": "#98a1ab",
    "main": "#56b4e9",
    "bridge": "#e6b04a",
    "third": "#3fc79a",
    "fourth": "#dc96be",
    "fifth": "#d3bf3d",
}
