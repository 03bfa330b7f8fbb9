#include "desc/library.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "desc/bind.h"
#include "desc/hf.h"
#include "desc/load.h"

#ifndef MBSIM_DATADIR
#define MBSIM_DATADIR "/usr/local/share/mbsim"
#endif

/* ---- where the data is ---- */

static bool is_folder(const char *root, const char *name)
{
	char path[4200];
	struct stat st;

	return snprintf(path, sizeof path, "%s/%s", root, name) < (int)sizeof path && stat(path, &st) == 0 &&
		S_ISDIR(st.st_mode);
}

static bool use_root(struct mb_library *library, const char *root)
{
	if (!is_folder(root, "models") || !is_folder(root, "hardware") || !is_folder(root, "configs"))
		return false;
	return snprintf(library->root, sizeof library->root, "%s", root) < (int)sizeof library->root;
}

/* The folder of an executable is in our build folder, or the bin/ beside an installation's share/. */
static bool use_executable(struct mb_library *library)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);

	if (n <= 0 || n >= (ssize_t)sizeof path - 32)
		return false;
	path[n] = '\0';
#ifdef MBSIM_BUILD_ROOT
	size_t build = strlen(MBSIM_BUILD_ROOT);

	if (strncmp(path, MBSIM_BUILD_ROOT, build) == 0 && path[build] == '/' && use_root(library, MBSIM_SOURCE_ROOT))
		return true;
#endif
	/* The source tree itself may have been moved together with its build folder. */
	for (int up = 0; up < 4; up++) {
		char *slash = strrchr(path, '/');
		size_t length;

		if (!slash || slash == path)
			return false;
		*slash = '\0';
		if (use_root(library, path))
			return true;
		length = strlen(path);
		memcpy(path + length, "/share/mbsim", sizeof "/share/mbsim");
		if (use_root(library, path))
			return true;
		path[length] = '\0';
	}
	return false;
}

bool mb_library_open(struct mb_library *library, struct mb_diags *diags)
{
	const char *given = getenv("MBSIM_DATA");
	struct mb_pos nowhere = { .file = "MBSIM_DATA" };

	library->root[0] = '\0';
	if (given && *given) {
		if (use_root(library, given))
			return true;
		return mb_fail(diags, nowhere, "'%.200s' does not hold models/, hardware/ and configs/", given);
	}
	if (use_executable(library) || use_root(library, MBSIM_DATADIR))
		return true;
	return mb_fail(diags, nowhere, "models/, hardware/ and configs/ are not found; set MBSIM_DATA to the folder that holds "
	               "them");
}

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int mb_library_list(const struct mb_library *library, const char *kind, struct mb_arena *arena, const char *const **ret)
{
	const char **names = NULL;
	size_t count = 0, capacity = 0;
	struct dirent *entry;
	DIR *dir = opendir(mb_arena_printf(arena, "%s/%s", library->root, kind));

	*ret = NULL;
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);

		if (length < 6 || entry->d_name[0] == '.' || strcmp(entry->d_name + length - 5, ".yaml") != 0)
			continue;
		if (count == capacity) {
			const char **more = mb_arena_alloc(arena, (capacity = 2 * capacity + 64) * sizeof *more);

			if (count)
				memcpy(more, names, count * sizeof *more);
			names = more;
		}
		names[count++] = mb_arena_strndup(arena, entry->d_name, length - 5);
	}
	closedir(dir);
	if (count)
		qsort(names, count, sizeof *names, by_name);
	*ret = names;
	return (int)count;
}

const char *mb_library_default_stack(const struct mb_library *library, struct mb_arena *arena)
{
	const char *const *names, *newest = NULL;
	int count = mb_library_list(library, "configs/stacks", arena, &names);

	/* Sorted by name, which for nemo-YY.MM[.PP] is by time. */
	for (int i = 0; i < count; i++) {
		if (strncmp(names[i], "nemo-", 5) == 0)
			newest = names[i];
	}
	return newest;
}

static const struct mb_node *unknown_name(const struct mb_library *library, const char *kind, const char *noun,
                                          const char *name, struct mb_pos at, struct mb_arena *arena,
                                          struct mb_diags *diags)
{
	const char *const *names, *near = NULL;
	int count = mb_library_list(library, kind, arena, &names);
	struct mb_diag *d = mb_report(diags, MB_ERROR, at, noun, "unknown %s '%.100s'", noun, name);

	if (count > 0)
		near = mb_nearest(name, names, (size_t)count);
	snprintf(d->nearest, sizeof d->nearest, "%s", near ? near : "");
	if (strchr(kind, '/') && strcmp(noun, "stack") != 0)
		return NULL;
	snprintf(d->expected, sizeof d->expected, "a name of 'mbsim list %s%s'%s", noun,
	         strcmp(noun, "hardware") == 0 ? "" : "s", strcmp(noun, "stack") == 0 ? "" : ", or a path to a YAML file");
	return NULL;
}

const struct mb_node *mb_load_shipped(const struct mb_library *library, const char *kind, const char *noun,
                                      const char *name, struct mb_pos at, struct mb_arena *arena, struct mb_diags *diags)
{
	char *path;

	if (!*name || strlen(name) > 100 || *name == '.' || strchr(name, '/'))
		return unknown_name(library, kind, noun, name, at, arena, diags);
	path = mb_arena_printf(arena, "%s/%s/%s.yaml", library->root, kind, name);
	if (access(path, F_OK) != 0)
		return unknown_name(library, kind, noun, name, at, arena, diags);
	return mb_node_read_file(path, arena, diags);
}

int mb_load_chain(const struct mb_library *library, const char *kind, const char *noun, const struct mb_node *node,
                  const struct mb_node *chain[MB_EXTENDS_MAX], struct mb_arena *arena, struct mb_diags *diags)
{
	for (int count = 0; count < MB_EXTENDS_MAX; count++) {
		const struct mb_node *base = mb_node_get(node, "extends");

		chain[count] = node;
		if (mb_node_is_null(base))
			return count + 1;
		if (base->type != MB_NODE_SCALAR) {
			mb_fail(diags, base->pos, "extends is not a name");
			return 0;
		}
		node = mb_load_shipped(library, kind, noun, base->text, base->pos, arena, diags);
		if (!node)
			return 0;
	}
	mb_fail(diags, chain[0]->pos, "extends more than %d files, probably in a circle", MB_EXTENDS_MAX);
	return 0;
}

/* ---- names, paths and mappings ---- */

static bool looks_like_path(const char *text)
{
	const char *dot = strrchr(text, '.');

	return strchr(text, '/') || (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 ||
	                                     strcmp(dot, ".json") == 0));
}

/* The last part of a path; of FOLDER/config.json and FOLDER/, as Hugging Face has them, the folder. */
static const char *path_name(const char *path)
{
	const char *end = path + strlen(path), *start;

	if (end - path > 12 && strcmp(end - 12, "/config.json") == 0)
		end -= 12;
	while (end > path + 1 && end[-1] == '/')
		end--;
	for (start = end; start > path && start[-1] != '/'; start--)
		;
	return start;
}

/* The mapping that `what` stands for, and a name for it. */
static const struct mb_node *resolve(const struct mb_node *what, const struct mb_library *library, const char *kind,
                                     const char *noun, struct mb_arena *arena, char *name, size_t size,
                                     struct mb_diags *diags)
{
	const char *base, *dot;
	int length;

	if (what->type == MB_NODE_MAP) {
		snprintf(name, size, "custom");
		return what;
	}
	if (what->type != MB_NODE_SCALAR || mb_node_is_null(what)) {
		mb_report(diags, MB_ERROR, what->pos, noun, "%s is %s, expected a name, a path or a mapping", noun,
		          mb_node_what(what));
		return NULL;
	}
	if (!looks_like_path(what->text)) {
		snprintf(name, size, "%s", what->text);
		return mb_load_shipped(library, kind, noun, what->text, what->pos, arena, diags);
	}
	base = path_name(what->text);
	length = (int)strcspn(base, "/");
	dot = memrchr(base, '.', (size_t)length);
	if (dot && !is_folder(what->text, "."))
		length = base[length] ? length : (int)(dot - base);
	snprintf(name, size, "%.*s", length < 60 ? length : 60, base);
	if (access(what->text, F_OK) != 0) {
		mb_report(diags, MB_ERROR, what->pos, noun, "%s: '%.200s' cannot be opened: %s", noun, what->text,
		          strerror(errno));
		return NULL;
	}
	return mb_node_read_file(is_folder(what->text, ".") && strcmp(noun, "model") == 0 ?
	                         mb_arena_printf(arena, "%s/config.json", what->text) : what->text, arena, diags);
}

bool mb_model_load(const struct mb_node *what, struct mb_library *library, struct mb_arena *arena, struct mb_model *ret,
                   struct mb_diags *diags)
{
	char name[64];
	const struct mb_node *node = resolve(what, library, "models", "model", arena, name, sizeof name, diags);

	if (mb_hf_is_config(node))
		node = mb_hf_model(node, arena, diags);
	if (!node || !mb_model_read(node, arena, ret, diags))
		return false;
	if (!ret->name[0])
		memcpy(ret->name, name, sizeof name);
	return true;
}

bool mb_hardware_load(const struct mb_node *what, struct mb_library *library, struct mb_arena *arena,
                      struct mb_hardware *ret, struct mb_diags *diags)
{
	char name[64];
	const struct mb_node *node = resolve(what, library, "hardware", "hardware", arena, name, sizeof name, diags);

	if (!node || !mb_hardware_read(node, library, arena, ret, diags))
		return false;
	if (!mb_node_get(node, "name"))
		memcpy(ret->name, name, sizeof name);
	return true;
}
