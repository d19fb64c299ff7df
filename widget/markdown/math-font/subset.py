"""Makes stix-two-math.woff2 of the font that its makers have: python subset.py STIXTwoMath-Regular.ttf

Needs fonttools and brotli. Letters, Greek, operators, arrows and brackets that formulas have, with the larger forms of those
that grow, and the forms of script letters and primes that Temml's style sheet asks for.
"""

import sys
from pathlib import Path

from fontTools import subset

CHARACTERS = """
20-7E,A0,A7,A8,AC,AF,B0,B1,B4,B5,B7,D7,F7,131,237,2C6,2C7,2D8-2DC,302-308,30A,30C,332,338
391-3A9,3B1-3C9,3D1,3D5,3D6,3F0,3F1,3F4,3F5
2010-2016,2020-2022,2026,2032-2037,203E,2044,2057,2061-2064,20D6,20D7,20DB
2102,210A-2113,2115,2118-211D,2124,2127-2128,212C-2138,2145-2148
2190-2199,219A-21AE,21BC-21D5,21DA-21DD,27F5-27FC
2200-22FF,2A00-2A06,2A0C,2A2F,2A3F,2A7D,2A7E,2A85-2A8C,2A95,2A96,2AAF,2AB0,2AB5-2ABA,2AC5,2AC6,2ACB,2ACC
2308-230B,2322,2323,23B0,23B1,23B4,23B5,23DC-23DF,27E6-27EB
25A0,25A1,25B3,25B5,25B9,25BD,25C7,25CA,25CB,25CF,2605,2660-2663,266D-266F,2713,27C2,29EB
1D400-1D467,1D49C-1D4B5,1D504-1D537,1D538-1D56B,1D6A8-1D71B,1D7CA-1D7D7
"""

options = subset.Options(flavor="woff2", hinting=False, notdef_outline=True)
options.layout_features = ["dtls", "ss01", "ss04"]
options.name_IDs = [0, 1, 2, 13, 14]
options.drop_tables += ["DSIG"]
font = subset.load_font(sys.argv[1], options)

# Some arrows have the overlap of an end part on its outer side, from which browsers cannot assemble the arrow.
variants = font["MATH"].table.MathVariants
for construction in [*variants.HorizGlyphConstruction, *variants.VertGlyphConstruction]:
    parts = construction.GlyphAssembly.PartRecords if construction.GlyphAssembly else []
    for part, inner, outer in [*zip(parts[-1:], ["Start"], ["End"]), *zip(parts[:1], ["End"], ["Start"])]:
        inner, outer = f"{inner}ConnectorLength", f"{outer}ConnectorLength"
        if getattr(part, inner) < variants.MinConnectorOverlap <= getattr(part, outer):
            print("turned", part.glyph)
            setattr(part, inner, getattr(part, outer))
            setattr(part, outer, 0)

subsetter = subset.Subsetter(options)
subsetter.populate(unicodes=subset.parse_unicodes(",".join(CHARACTERS.split())))
subsetter.subset(font)
subset.save_font(font, str(Path(__file__).with_name("stix-two-math.woff2")), options)
