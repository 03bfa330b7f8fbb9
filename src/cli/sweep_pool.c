#include "cli/sweep_pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 1024 };

struct worker {
	pid_t pid;
	int to, from;                   /* -1: not running */
	int index;                      /* cell under way; -1: none */
};

struct pool {
	const struct mb_pool_task *task;
	const int *indices;
	int count, next, jobs, signals;
	sigset_t before;
	struct worker workers[MAX_JOBS];
};

struct message { int32_t index, ok; uint64_t length; };

static bool read_all(int fd, void *data, size_t size)
{
	char *at = data;

	while (size > 0) {
		ssize_t n = read(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static void serve(const struct mb_pool_task *task, int from, int to)
{
	struct message m = { 0 };

	while (read_all(from, &m.index, sizeof m.index)) {
		struct mb_text answer = { 0 };

		mb_text_add(&answer, "");
		m.ok = task->work(task->context, m.index, &answer);
		m.length = answer.length;
		if (!write_all(to, &m, sizeof m) || !write_all(to, answer.length ? answer.data : "", answer.length))
			return;
		mb_text_free(&answer);
	}
}

/* Pipes of the others are not for this one: an open end would keep them from seeing the end of their input. */
static void become_worker(struct pool *p, int from, int to, pid_t parent)
{
	p->task->begin(p->task->context);
	for (int i = 0; i < p->jobs; i++) {
		if (p->workers[i].to >= 0) {
			close(p->workers[i].to);
			close(p->workers[i].from);
		}
	}
	close(p->signals);
	sigprocmask(SIG_SETMASK, &p->before, NULL);
	signal(SIGINT, SIG_IGN);        /* the terminal's interrupt reaches the whole group; the parent decides */
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		serve(p->task, from, to);
	_exit(0);
}

static bool start_worker(struct pool *p, struct worker *w)
{
	int down[2], up[2];
	pid_t parent = getpid();

	*w = (struct worker){ .to = -1, .from = -1, .index = -1 };
	if (pipe(down) != 0)
		return false;
	if (pipe(up) != 0) {
		close(down[0]);
		close(down[1]);
		return false;
	}
	fflush(NULL);
	w->pid = fork();
	if (w->pid == 0) {
		close(down[1]);
		close(up[0]);
		become_worker(p, down[0], up[1], parent);
	}
	close(down[0]);
	close(up[1]);
	if (w->pid < 0) {
		close(down[1]);
		close(up[0]);
		return false;
	}
	w->to = down[1];
	w->from = up[0];
	return true;
}

static void end_worker(struct worker *w, bool now, int *status)
{
	if (w->to < 0)
		return;
	if (now)
		kill(w->pid, SIGKILL);
	close(w->to);
	close(w->from);
	w->to = w->from = -1;
	while (waitpid(w->pid, status, 0) < 0 && errno == EINTR)
		continue;
}

static void hand_out(struct pool *p, struct worker *w)
{
	int32_t index;

	w->index = -1;
	if (p->next == p->count)
		return;
	index = p->indices[p->next++];
	w->index = index;
	write_all(w->to, &index, sizeof index);
}

/* A worker that is gone failed its cell; another takes its place. */
static bool bury(struct pool *p, struct worker *w)
{
	int status = 0, index = w->index;
	char why[80];

	end_worker(w, true, &status);
	snprintf(why, sizeof why, WIFSIGNALED(status) ? "the worker was ended by signal %d" : "the worker ended",
	         WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	if (index >= 0 && !p->task->done(p->task->context, index, false, why))
		return false;
	if (p->next < p->count && start_worker(p, w))
		hand_out(p, w);
	return true;
}

static bool take_answer(struct pool *p, struct worker *w)
{
	struct message m;
	char *answer;
	bool ok;

	if (!read_all(w->from, &m, sizeof m) || m.index != w->index || m.length > SIZE_MAX - 1 || !(answer = malloc((size_t)m.length + 1)))
		return bury(p, w);
	if (!read_all(w->from, answer, (size_t)m.length)) {
		free(answer);
		return bury(p, w);
	}
	answer[m.length] = '\0';
	hand_out(p, w);
	ok = p->task->done(p->task->context, m.index, m.ok != 0, answer);
	free(answer);
	return ok;
}

static int watch(struct pool *p, struct pollfd *fds)
{
	int busy = 0;

	for (int i = 0; i < p->jobs; i++) {
		bool waits = p->workers[i].to >= 0 && p->workers[i].index >= 0;

		fds[i] = (struct pollfd){ .fd = waits ? p->workers[i].from : -1, .events = POLLIN };
		busy += waits;
	}
	fds[p->jobs] = (struct pollfd){ .fd = p->signals, .events = POLLIN };
	return busy;
}

static enum mb_pool_end work_through(struct pool *p)
{
	struct pollfd fds[MAX_JOBS + 1];

	while (watch(p, fds) > 0) {
		if (poll(fds, (nfds_t)p->jobs + 1, -1) < 0 && errno != EINTR)
			return MB_POOL_STOPPED;
		if (fds[p->jobs].revents)
			return MB_POOL_INTERRUPTED;
		for (int i = 0; i < p->jobs; i++) {
			if (fds[i].revents && !take_answer(p, &p->workers[i]))
				return MB_POOL_STOPPED;
		}
	}
	return p->next == p->count ? MB_POOL_DONE : MB_POOL_STOPPED;
}

enum mb_pool_end mb_pool_run(const struct mb_pool_task *task, const int *indices, int count, int jobs)
{
	struct pool *p = calloc(1, sizeof *p);
	enum mb_pool_end end;
	sigset_t stop;
	int status;

	if (!p)
		return MB_POOL_STOPPED;
	*p = (struct pool){ .task = task, .indices = indices, .count = count, .jobs = jobs < 1 ? 1 : jobs > MAX_JOBS ? MAX_JOBS : jobs };
	p->jobs = p->jobs > count ? count : p->jobs;
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, &p->before);
	p->signals = signalfd(-1, &stop, SFD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < p->jobs; i++)
		p->workers[i] = (struct worker){ .to = -1, .from = -1, .index = -1 };
	for (int i = 0; i < p->jobs; i++) {
		if (start_worker(p, &p->workers[i]))
			hand_out(p, &p->workers[i]);
	}
	end = work_through(p);
	for (int i = 0; i < p->jobs; i++)
		end_worker(&p->workers[i], end != MB_POOL_DONE, &status);
	close(p->signals);
	sigprocmask(SIG_SETMASK, &p->before, NULL);
	free(p);
	return end;
}
