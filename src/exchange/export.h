/* A run in the words of other tools; mb_import_text reads each of them back as the same run. */
#ifndef MBSIM_EXCHANGE_EXPORT_H
#define MBSIM_EXCHANGE_EXPORT_H

#include "base/text.h"
#include "plan/case.h"

enum mb_export_format { MB_EXPORT_BRIDGE, MB_EXPORT_MEGATRON, MB_EXPORT_YAML, MB_EXPORT_SBATCH };

bool mb_export_format_find(const char *name, enum mb_export_format *ret);

/* Every key of `q` has one value. What the format cannot say is a warning. False after an error. */
bool mb_export(const struct mb_query *q, enum mb_export_format format, struct mb_library *library, struct mb_arena *arena,
               struct mb_text *out, struct mb_diags *diags);

/* Whether two runs train the same thing in the same way on the same machine; else *difference names what differs. */
bool mb_export_same(const struct mb_query *a, const struct mb_query *b, const char **difference);

#endif
