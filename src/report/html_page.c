#include "report/html_page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mb_block *mb_page_add(struct mb_page *page, enum mb_block_kind kind, const char *text)
{
	struct mb_block *b = mb_arena_alloc(page->arena, sizeof *b);

	b->kind = kind;
	b->text = text ? mb_arena_strdup(page->arena, text) : "";
	if (page->last)
		page->last->next = b;
	else
		page->first = b;
	page->last = b;
	return b;
}

struct mb_block *mb_page_printf(struct mb_page *page, enum mb_block_kind kind, const char *fmt, ...)
{
	struct mb_block *b;
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	b = mb_page_add(page, kind, text);
	free(text);
	return b;
}

struct mb_table *mb_page_table(struct mb_page *page)
{
	struct mb_table *t = mb_arena_alloc(page->arena, sizeof *t);

	t->arena = page->arena;
	return t;
}

void mb_page_free(struct mb_page *page)
{
	for (struct mb_block *b = page->first; b; b = b->next) {
		cJSON_Delete(b->chart);
		b->chart = NULL;
	}
}

/* ---- HTML ---- */

static void escape(struct mb_text *t, const char *s)
{
	for (; *s; s++) {
		const char *entity = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '"' ? "&quot;" : NULL;

		if (entity)
			mb_text_add(t, entity);
		else
			mb_text_addn(t, s, 1);
	}
}

/* Long keys may break behind their underscores, and nowhere else while there is room for a part. */
static void escape_code(struct mb_text *t, const char *s)
{
	for (; *s; s++) {
		escape(t, (char[]){ *s, '\0' });
		mb_text_add(t, *s == '_' ? "<wbr>" : "");
	}
}

/* **bold** and `code`; an opening mark without its end is text. */
static void add_marked(struct mb_text *t, const char *s)
{
	while (*s) {
		const char *mark = strncmp(s, "**", 2) == 0 ? "**" : *s == '`' ? "`" : NULL;
		const char *end = mark ? strstr(s + strlen(mark), mark) : NULL;
		char part[1024];

		if (!end || end - s >= (long)sizeof part) {
			char one[2] = { *s++, '\0' };

			escape(t, one);
			continue;
		}
		s += strlen(mark);
		snprintf(part, sizeof part, "%.*s", (int)(end - s), s);
		mb_text_add(t, *mark == '*' ? "<b>" : "<code>");
		(*mark == '*' ? escape : escape_code)(t, part);
		mb_text_add(t, *mark == '*' ? "</b>" : "</code>");
		s = end + strlen(mark);
	}
}

static void add_head(struct mb_text *t, const struct mb_table *table, bool sortable)
{
	mb_text_add(t, "<thead><tr>");
	for (int c = 0; c < table->column_count; c++) {
		const struct mb_column *column = &table->columns[c];

		mb_text_printf(t, "<th scope=\"col\"%s>", column->align == MB_LEFT ? "" : " class=\"n\"");
		mb_text_add(t, sortable ? "<button type=\"button\" class=\"sort\">" : "");
		escape(t, column->head);
		if (column->unit[0]) {
			mb_text_add(t, " <span class=\"unit\">");
			escape(t, column->unit);
			mb_text_add(t, "</span>");
		}
		mb_text_add(t, sortable ? "</button></th>" : "</th>");
	}
	mb_text_add(t, "</tr></thead>");
}

static void add_table(struct mb_text *t, const struct mb_table *table, bool sortable)
{
	mb_text_printf(t, "<div class=\"scroll\" tabindex=\"0\"><table%s>", sortable ? " class=\"sortable\"" : "");
	add_head(t, table, sortable);
	mb_text_add(t, "<tbody>");
	for (int r = 0; r < table->row_count; r++) {
		const struct mb_row *row = &table->rows[r];

		mb_text_printf(t, "<tr%s>", row->ink == MB_INK_BOLD ? " class=\"chosen\"" : "");
		for (int c = 0; c < row->count; c++) {
			bool number = table->columns[c].align != MB_LEFT;

			mb_text_printf(t, c == 0 ? "<th scope=\"row\"%s>" : "<td%s>", number ? " class=\"n\"" : "");
			add_marked(t, row->cells[c].text);
			mb_text_add(t, c == 0 ? "</th>" : "</td>");
		}
		mb_text_add(t, "</tr>\n");
	}
	mb_text_add(t, "</tbody></table></div>\n");
}

static void add_tiles(struct mb_text *t, const struct mb_table *table)
{
	mb_text_add(t, "<div class=\"tiles\">");
	for (int r = 0; r < table->row_count; r++) {
		mb_text_add(t, "<div class=\"tile\"><div class=\"label\">");
		escape(t, table->rows[r].cells[0].text);
		mb_text_add(t, "</div><div class=\"value\">");
		escape(t, table->rows[r].cells[1].text);
		mb_text_add(t, "</div><div class=\"note\">");
		escape(t, table->rows[r].cells[2].text);
		mb_text_add(t, "</div></div>");
	}
	mb_text_add(t, "</div>\n");
}

/* JSON inside a script element must not hold "</". */
static void add_json(struct mb_text *t, const cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	for (const char *s = text ? text : "{}"; *s; s++)
		mb_text_addn(t, s[0] == '<' ? "\\u003c" : s, s[0] == '<' ? 6 : 1);
	cJSON_free(text);
}

static void add_chart(struct mb_text *t, const struct mb_block *b)
{
	mb_text_printf(t, "<figure id=\"%s\"><figcaption>", b->id);
	add_marked(t, b->text);
	mb_text_printf(t, "</figcaption>\n<div class=\"chart\"><canvas role=\"img\" tabindex=\"0\" data-chart=\"%s-data\" aria-label=\"", b->id);
	escape(t, b->alt ? b->alt : b->text);
	mb_text_printf(t, "\"></canvas></div>\n<script type=\"application/json\" id=\"%s-data\">", b->id);
	add_json(t, b->chart);
	mb_text_add(t, "</script>\n<details><summary>show numbers</summary>\n");
	add_table(t, b->table, false);
	mb_text_add(t, "</details></figure>\n");
}

static void add_block(struct mb_text *t, const struct mb_block *b, int *section)
{
	switch (b->kind) {
	case MB_BLOCK_SECTION:
		mb_text_printf(t, "%s<section id=\"%s\"><h2>%d. ", *section ? "</section>\n" : "", b->id, *section + 1);
		escape(t, b->text);
		mb_text_add(t, "</h2>\n");
		++*section;
		break;
	case MB_BLOCK_LEAD:
	case MB_BLOCK_TEXT:
		mb_text_add(t, b->kind == MB_BLOCK_LEAD ? "<p class=\"lead\">" : "<p>");
		add_marked(t, b->text);
		mb_text_add(t, "</p>\n");
		break;
	case MB_BLOCK_TILES:
		add_tiles(t, b->table);
		break;
	case MB_BLOCK_TABLE:
		if (b->folded)
			mb_text_add(t, "<details><summary>");
		if (b->folded)
			add_marked(t, b->text);
		mb_text_add(t, b->folded ? "</summary>\n" : "");
		add_table(t, b->table, b->sortable);
		mb_text_add(t, b->folded ? "</details>\n" : "");
		break;
	case MB_BLOCK_CHART:
		add_chart(t, b);
		break;
	case MB_BLOCK_COMMAND:
		mb_text_add(t, "<div class=\"command\"><pre><code>");
		escape(t, b->text);
		mb_text_add(t, "</code></pre><button type=\"button\" class=\"copy\">copy</button></div>\n");
		break;
	}
}

void mb_page_html(const struct mb_page *page, struct mb_text *ret)
{
	int section = 0;

	mb_text_add(ret, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	            "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
	escape(ret, page->title);
	mb_text_add(ret, "</title>\n<style>\n");
	mb_text_addn(ret, mb_asset_css.text, mb_asset_css.length);
	mb_text_add(ret, "</style></head>\n<body>\n<main>\n<h1>");
	escape(ret, page->title);
	mb_text_add(ret, "</h1>\n");
	for (const struct mb_block *b = page->first; b; b = b->next)
		add_block(ret, b, &section);
	mb_text_add(ret, section ? "</section>\n</main>\n<footer>" : "</main>\n<footer>");
	add_marked(ret, page->footer);
	mb_text_add(ret, "</footer>\n<!--\n");
	mb_text_addn(ret, mb_asset_licence.text, mb_asset_licence.length);
	mb_text_add(ret, "-->\n<script>\n");
	mb_text_addn(ret, mb_asset_chart.text, mb_asset_chart.length);
	mb_text_add(ret, "\n</script>\n<script>\n");
	mb_text_addn(ret, mb_asset_js.text, mb_asset_js.length);
	mb_text_add(ret, "</script>\n</body></html>\n");
}

/* ---- Markdown ---- */

static void markdown_tiles(struct mb_text *t, const struct mb_table *table)
{
	for (int r = 0; r < table->row_count; r++)
		mb_text_printf(t, "- %s: **%s** (%s)\n", table->rows[r].cells[0].text, table->rows[r].cells[1].text, table->rows[r].cells[2].text);
}

void mb_page_markdown(const struct mb_page *page, struct mb_text *ret)
{
	int section = 0;

	mb_text_printf(ret, "# %s\n", page->title);
	for (const struct mb_block *b = page->first; b; b = b->next) {
		mb_text_add(ret, "\n");
		switch (b->kind) {
		case MB_BLOCK_SECTION:
			mb_text_printf(ret, "## %d. %s\n", ++section, b->text);
			break;
		case MB_BLOCK_LEAD:
		case MB_BLOCK_TEXT:
			mb_text_printf(ret, "%s\n", b->text);
			break;
		case MB_BLOCK_TILES:
			markdown_tiles(ret, b->table);
			break;
		case MB_BLOCK_TABLE:
			mb_table_markdown(b->table, ret);
			break;
		case MB_BLOCK_CHART:
			mb_text_printf(ret, "**%s**\n\n", b->text);
			mb_table_markdown(b->table, ret);
			break;
		case MB_BLOCK_COMMAND:
			mb_text_printf(ret, "```sh\n%s\n```\n", b->text);
			break;
		}
	}
	mb_text_printf(ret, "\n---\n%s\n", page->footer);
}
