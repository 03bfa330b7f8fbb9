/* Aligned tables: words left, numbers on their decimal point, two spaces between columns, headings over them. */
#ifndef MBSIM_REPORT_TABLE_H
#define MBSIM_REPORT_TABLE_H

#include "base/arena.h"
#include "report/style.h"

enum mb_align { MB_LEFT, MB_RIGHT, MB_DECIMAL };

enum { MB_MAX_COLUMNS = 32 };

struct mb_column {
	const char *head, *unit;        /* unit "": none; a row of units is printed when any column has one */
	enum mb_align align;
	int drop;                       /* 0: always shown; else columns go in this order while the table is too wide */
	bool clip;                      /* last resort: its cells are cut */
	bool hidden;
};

struct mb_cell {
	const char *text;
	enum mb_ink ink;
};

struct mb_row {
	struct mb_cell cells[MB_MAX_COLUMNS];
	int count;
	enum mb_ink ink;
	const char *note;               /* behind the last column; NULL: none */
};

struct mb_table {
	struct mb_arena *arena;
	struct mb_column columns[MB_MAX_COLUMNS];
	int column_count;
	struct mb_row *rows;
	int row_count, row_room;
};

/* Zero-initialise with an arena, add columns, then rows of cells. */
void mb_table_column(struct mb_table *t, const char *head, const char *unit, enum mb_align align, int drop);
void mb_table_row(struct mb_table *t, enum mb_ink ink);
void mb_table_cell(struct mb_table *t, const char *text);
void mb_table_cell_ink(struct mb_table *t, enum mb_ink ink, const char *text);
void mb_table_note(struct mb_table *t, const char *note);

void mb_table_print(struct mb_table *t, const struct mb_style *s, struct mb_text *ret);
void mb_table_markdown(const struct mb_table *t, struct mb_text *ret);

#endif
