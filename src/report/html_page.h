/*
 * A report as blocks: headings, text, tables, charts, commands. One list of blocks is written as a single HTML file that
 * needs no network, and as Markdown in the same order.
 */
#ifndef MBSIM_REPORT_HTML_PAGE_H
#define MBSIM_REPORT_HTML_PAGE_H

#include <cjson/cJSON.h>

#include "report/table.h"

enum mb_block_kind { MB_BLOCK_SECTION, MB_BLOCK_LEAD, MB_BLOCK_TEXT, MB_BLOCK_TILES, MB_BLOCK_TABLE, MB_BLOCK_CHART, MB_BLOCK_COMMAND };

struct mb_block {
	enum mb_block_kind kind;
	const char *id;                 /* of a section or a chart */
	const char *text;               /* **bold** and `code` are understood; a chart's finding */
	const char *alt;                /* a chart in words */
	struct mb_table *table;         /* a table; a chart's numbers; tiles: label, value, note in a row each */
	cJSON *chart;                   /* what html_page.js draws; freed with the page */
	bool folded, sortable;          /* a table behind a button; a table whose heads sort it */
	struct mb_block *next;
};

struct mb_page {
	struct mb_arena *arena;
	const char *title, *footer;
	struct mb_block *first, *last;
};

struct mb_block *mb_page_add(struct mb_page *page, enum mb_block_kind kind, const char *text);
struct mb_block *mb_page_printf(struct mb_page *page, enum mb_block_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
struct mb_table *mb_page_table(struct mb_page *page);          /* for a block of this page */

void mb_page_html(const struct mb_page *page, struct mb_text *ret);
void mb_page_markdown(const struct mb_page *page, struct mb_text *ret);
void mb_page_free(struct mb_page *page);

/* Files that are part of the program: made by tools/embed. */
struct mb_asset { const char *text; size_t length; };
extern const struct mb_asset mb_asset_css, mb_asset_js, mb_asset_chart, mb_asset_licence;

#endif
