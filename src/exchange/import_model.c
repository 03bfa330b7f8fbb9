#include <ctype.h>
#include <string.h>

#include "desc/load.h"
#include "exchange/import_private.h"

/* ---- which shipped model a checkpoint's name means ---- */

/* "ZhipuAI/GLM-4.5-Air-Base-mcore" and "zai-org/GLM-4.5-Air": the last part, without what does not change sizes. */
static void normal(const char *name, char *to, size_t size)
{
	static const char *const endings[] = { "-mcore", "-hf", "-base", "-instruct", "-chat", "-bf16", "-fp8", "-pt", "-it", "-pretrain",
		"-thinking", "-2507", "-2501", "-v0.1", "-0924" };
	const char *slash;
	size_t n = strlen(name);
	bool again = true;

	while (n > 0 && name[n - 1] == '/')
		n--;
	slash = memrchr(name, '/', n);
	if (slash != NULL) {
		n -= (size_t)(slash + 1 - name);
		name = slash + 1;
	}
	n = n < size ? n : size - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = (char)tolower((unsigned char)name[i]);
	to[n] = '\0';
	while (again) {
		again = false;
		for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
			size_t length = strlen(endings[i]);

			if (n > length && strcmp(to + n - length, endings[i]) == 0) {
				n -= length;
				to[n] = '\0';
				again = true;
			}
		}
	}
	if (strncmp(to, "meta-llama", 10) == 0)
		memmove(to, to + 5, n - 5 + 1);
}

const char *mb_import_shipped(struct mb_importer *m, const char *hf_id)
{
	char wanted[128], have[128];
	const char *const *names;
	int count = mb_library_list(m->library, "models", m->arena, &names);

	for (int i = 0; i < count; i++) {
		if (strcmp(names[i], hf_id) == 0)
			return names[i];
	}
	normal(hf_id, wanted, sizeof wanted);
	for (int i = 0; i < count; i++) {
		struct mb_diags ignored = { 0 };
		const struct mb_node *map = mb_load_shipped(m->library, "models", "model", names[i], m->model_pos, m->arena, &ignored);
		const struct mb_node *id = mb_node_get(map, "hf_id");

		normal(names[i], have, sizeof have);
		if (strcmp(wanted, have) == 0)
			return names[i];
		if (id == NULL || id->type != MB_NODE_SCALAR)
			continue;
		normal(id->text, have, sizeof have);
		if (strcmp(wanted, have) == 0)
			return names[i];
	}
	return NULL;
}
