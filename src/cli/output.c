#include "cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CANVAS = 100, NARROWEST = 40 };

static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *value = getenv(names[i]);

		if (value && value[0])
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

struct mb_style mb_style_of(FILE *stream, bool quiet)
{
	struct mb_style s = { .width = CANVAS, .quiet = quiet };
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	struct winsize size;
	int fd = fileno(stream);

	if (!isatty(fd))
		return s;
	s.cut = true;
	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		s.width = size.ws_col < NARROWEST ? NARROWEST : size.ws_col < CANVAS ? size.ws_col : CANVAS;
	s.utf8 = locale_is_utf8();
	s.colour = !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
	return s;
}

bool mb_output_open(struct mb_output *out, const char *path)
{
	struct stat st;

	*out = (struct mb_output){ .stream = stdout, .path = path };
	if (!path)
		return true;
	/* A device such as /dev/null is written in place: it cannot be replaced by a file. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		out->stream = fopen(path, "w");
	} else {
		snprintf(out->temporary, sizeof out->temporary, "%s.XXXXXX", path);

		int fd = mkstemp(out->temporary);
		mode_t mask = umask(0);

		umask(mask);
		if (fd >= 0)
			fchmod(fd, 0666 & ~mask);
		out->stream = fd < 0 ? NULL : fdopen(fd, "w");
	}
	if (!out->stream)
		fprintf(stderr, "mbsim: error: cannot write '%s': %s\n", path, strerror(errno));
	return out->stream != NULL;
}

void mb_output_text(struct mb_output *out, const struct mb_text *text)
{
	if (text->length)
		fwrite(text->data, 1, text->length, out->stream);
}

bool mb_output_close(struct mb_output *out, bool keep)
{
	bool ok = fflush(out->stream) == 0 && !ferror(out->stream);
	int reason = errno;

	if (out->path && fclose(out->stream) != 0) {
		ok = false;
		reason = errno;
	}
	if (out->temporary[0] && (!ok || !keep)) {
		unlink(out->temporary);
	} else if (out->temporary[0] && rename(out->temporary, out->path) != 0) {
		ok = false;
		reason = errno;
		unlink(out->temporary);
	}
	if (!ok && reason != EPIPE)
		fprintf(stderr, "mbsim: error: cannot write '%s': %s\n", out->path ? out->path : "standard output",
		        strerror(reason));
	return ok;
}
