/* The colours of charts: told apart by people who are colour-blind, on light ground and on dark (after M. Okabe and
 * K. Ito, "Color Universal Design", 2008).  What is a text, an axis or a grid takes the page's ink.  The files in
 * harness/report/charts hold these colours by value. */
#ifndef MLBENCH_REPORT_HTML_PALETTE_H
#define MLBENCH_REPORT_HTML_PALETTE_H

#define PALETTE_WORKING "#0b84c4" /* blue */
#define PALETTE_STARVED "#e69f00" /* orange */
#define PALETTE_BLOCKED "#9aa0a6" /* grey */
#define PALETTE_BINDS "#d55e00"   /* vermilion: what limits */
#define PALETTE_GOOD "#009e73"    /* green */
#define PALETTE_OTHER "#cc79a7"   /* purple */
#define PALETTE_SKY "#56b4e9"
#define PALETTE_YELLOW "#d4b106"

/* Of stages and other series, in their order. */
#define PALETTE_SERIES                                                                        \
	{                                                                                     \
		PALETTE_WORKING, PALETTE_STARVED, PALETTE_GOOD, PALETTE_OTHER, PALETTE_BINDS, \
			PALETTE_SKY, PALETTE_YELLOW, PALETTE_BLOCKED                          \
	}

#endif
