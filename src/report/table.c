#include "report/table.h"

#include <string.h>

#include "report/number.h"

void mb_table_column(struct mb_table *t, const char *head, const char *unit, enum mb_align align, int drop)
{
	if (t->column_count == MB_MAX_COLUMNS)
		return;
	t->columns[t->column_count++] = (struct mb_column){ .head = head, .unit = unit, .align = align, .drop = drop };
}

void mb_table_row(struct mb_table *t, enum mb_ink ink)
{
	if (t->row_count == t->row_room) {
		int room = t->row_room ? 2 * t->row_room : 16;
		struct mb_row *rows = mb_arena_alloc(t->arena, (size_t)room * sizeof *rows);

		if (t->row_count)
			memcpy(rows, t->rows, (size_t)t->row_count * sizeof *rows);
		t->rows = rows;
		t->row_room = room;
	}
	t->rows[t->row_count++] = (struct mb_row){ .ink = ink };
}

void mb_table_cell_ink(struct mb_table *t, enum mb_ink ink, const char *text)
{
	struct mb_row *row = &t->rows[t->row_count - 1];

	if (row->count < t->column_count)
		row->cells[row->count++] = (struct mb_cell){ mb_arena_strdup(t->arena, text), ink };
}

void mb_table_cell(struct mb_table *t, const char *text)
{
	mb_table_cell_ink(t, MB_INK_PLAIN, text);
}

void mb_table_note(struct mb_table *t, const char *note)
{
	t->rows[t->row_count - 1].note = mb_arena_strdup(t->arena, note);
}

static const char *cell_text(const struct mb_row *row, int column)
{
	return column < row->count ? row->cells[column].text : "";
}

static bool is_number(const char *s)
{
	return s[strcspn(s, "0123456789")] != '\0';
}

/* Characters from the decimal point on, so that points stand below each other. */
static int tail_width(const char *s)
{
	const char *point = strchr(s, '.');

	return point && is_number(s) ? mb_text_width(point) : 0;
}

struct widths {
	int total[MB_MAX_COLUMNS], tail[MB_MAX_COLUMNS];
};

static void measure(const struct mb_table *t, struct widths *w)
{
	for (int c = 0; c < t->column_count; c++) {
		int body = 0, other = mb_text_width(t->columns[c].head);
		int unit = mb_text_width(t->columns[c].unit);

		w->tail[c] = 0;
		for (int r = 0; r < t->row_count; r++) {
			const char *s = cell_text(&t->rows[r], c);
			int width = mb_text_width(s), tail = tail_width(s);

			if (t->columns[c].align != MB_DECIMAL || !is_number(s)) {
				other = width > other ? width : other;
				continue;
			}
			body = width - tail > body ? width - tail : body;
			w->tail[c] = tail > w->tail[c] ? tail : w->tail[c];
		}
		other = unit > other ? unit : other;
		w->total[c] = body + w->tail[c] > other ? body + w->tail[c] : other;
	}
}

static int table_width(const struct mb_table *t, const struct widths *w)
{
	int width = 0, notes = 0;

	for (int c = 0; c < t->column_count; c++) {
		if (!t->columns[c].hidden)
			width += w->total[c] + (width ? 2 : 0);
	}
	for (int r = 0; r < t->row_count; r++) {
		int note = t->rows[r].note ? 2 + mb_text_width(t->rows[r].note) : 0;

		notes = note > notes ? note : notes;
	}
	return width + notes;
}

enum { CLIPPED = 8 };           /* what stays of a cell that is cut */

/* Hides columns in their order, then narrows those that may be clipped. */
static void fit(struct mb_table *t, struct widths *w, int canvas)
{
	for (int order = 1; order < 16 && table_width(t, w) > canvas; order++) {
		for (int c = 0; c < t->column_count; c++) {
			if (t->columns[c].drop == order)
				t->columns[c].hidden = true;
		}
	}
	for (int c = 0; c < t->column_count; c++) {
		int over = table_width(t, w) - canvas;

		if (over > 0 && t->columns[c].clip && !t->columns[c].hidden)
			w->total[c] = w->total[c] - over > CLIPPED ? w->total[c] - over
			              : w->total[c] < CLIPPED      ? w->total[c]
			                                           : CLIPPED;
	}
}

/* The longest start of `s` that takes at most `width` columns. */
static size_t clipped_length(const char *s, int width)
{
	size_t i = 0;
	int columns = 0;

	while (s[i]) {
		if (((unsigned char)s[i] & 0xc0) != 0x80 && columns++ == width)
			break;
		i++;
	}
	return i;
}

static void put_cell(struct mb_text *ret, const struct mb_style *s, const struct mb_column *column, const char *text,
                     enum mb_ink ink, int total, int tail, bool last)
{
	int width = mb_text_width(text);

	if (width > total) {
		size_t kept = clipped_length(text, total - (s->utf8 ? 1 : 2));

		mb_text_addn(ret, text, kept);
		mb_text_add(ret, s->utf8 ? "…" : "..");
		return;
	}

	int after = column->align == MB_DECIMAL && is_number(text) ? tail - tail_width(text) : 0;
	int before = column->align == MB_LEFT ? 0 : total - width - after;

	if (column->align == MB_LEFT)
		after = total - width;
	if (before < 0) {
		after += before;
		before = 0;
	}
	mb_text_pad(ret, ' ', before);
	mb_ink(ret, s, ink, text);
	if (!last)
		mb_text_pad(ret, ' ', after);
}

static int last_visible(const struct mb_table *t, const struct mb_row *row)
{
	int last = -1;

	for (int c = 0; c < t->column_count; c++) {
		if (!t->columns[c].hidden && (!row || cell_text(row, c)[0] != '\0'))
			last = c;
	}
	return last;
}

static void print_row(const struct mb_table *t, const struct mb_style *s, const struct widths *w,
                      const struct mb_row *row, struct mb_text *ret)
{
	int last = row->note ? last_visible(t, NULL) : last_visible(t, row);
	bool first = true;

	for (int c = 0; c <= last; c++) {
		if (t->columns[c].hidden)
			continue;
		if (!first)
			mb_text_add(ret, "  ");
		first = false;
		enum mb_ink ink = c < row->count && row->cells[c].ink ? row->cells[c].ink : row->ink;

		put_cell(ret, s, &t->columns[c], cell_text(row, c), ink, w->total[c], w->tail[c],
		         c == last && !row->note);
	}
	if (row->note) {
		mb_text_add(ret, "  ");
		mb_ink(ret, s, row->ink, row->note);
	}
	mb_text_add(ret, "\n");
}

/* Headings are cells too, but never aligned on a decimal point. */
static void print_heads(const struct mb_table *t, const struct mb_style *s, const struct widths *w, bool units,
                        struct mb_text *ret)
{
	int last = -1;

	for (int c = 0; c < t->column_count; c++) {
		const char *head = units ? t->columns[c].unit : t->columns[c].head;

		if (!t->columns[c].hidden && head[0])
			last = c;
	}
	bool first = true;

	for (int c = 0; c <= last; c++) {
		struct mb_column column = t->columns[c];

		if (column.hidden)
			continue;
		if (!first)
			mb_text_add(ret, "  ");
		first = false;
		column.align = column.align == MB_LEFT ? MB_LEFT : MB_RIGHT;
		put_cell(ret, s, &column, units ? column.unit : column.head, units ? MB_INK_DIM : MB_INK_BOLD,
		         w->total[c], 0, c == last);
	}
	if (last >= 0)
		mb_text_add(ret, "\n");
}

void mb_table_print(struct mb_table *t, const struct mb_style *s, struct mb_text *ret)
{
	struct widths w;

	measure(t, &w);
	if (s->cut)
		fit(t, &w, s->width);
	print_heads(t, s, &w, false, ret);
	print_heads(t, s, &w, true, ret);
	for (int r = 0; r < t->row_count; r++)
		print_row(t, s, &w, &t->rows[r], ret);
}

static void markdown_cell(struct mb_text *ret, const char *s)
{
	for (; *s; s++) {
		if (*s == '|' || *s == '\\')
			mb_text_add(ret, "\\");
		mb_text_addn(ret, s, 1);
	}
}

void mb_table_markdown(const struct mb_table *t, struct mb_text *ret)
{
	for (int c = 0; c < t->column_count; c++) {
		mb_text_add(ret, "| ");
		markdown_cell(ret, t->columns[c].head);
		mb_text_printf(ret, "%s%s ", t->columns[c].unit[0] ? ", " : "", t->columns[c].unit);
	}
	mb_text_add(ret, "|\n");
	for (int c = 0; c < t->column_count; c++)
		mb_text_add(ret, t->columns[c].align == MB_LEFT ? "|---" : "|--:");
	mb_text_add(ret, "|\n");
	for (int r = 0; r < t->row_count; r++) {
		for (int c = 0; c < t->column_count; c++) {
			mb_text_add(ret, "| ");
			markdown_cell(ret, cell_text(&t->rows[r], c));
			mb_text_add(ret, " ");
		}
		mb_text_add(ret, "|\n");
	}
}
