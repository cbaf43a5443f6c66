/*
 * test_points.c
 *	  Holds up a backend at the points of a test build (src/feed.h), by
 *	  files in the data directory: as long as test_point.NAME is there, the backend
 *	  whose pid it holds waits at the point, and says so by test_point.NAME.reached.
 *
 *	  Must be loaded before the test build, which looks for feed_test_point().
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/fd.h"

PG_MODULE_MAGIC;

/* Not "extern" alone: since 16 a module hides what is not marked. */
extern PGDLLEXPORT void feed_test_point(const char *name);

/* Is there a file, which means this backend? */
static bool
is_held(const char *path)
{
	FILE	   *file = AllocateFile(path, "r");
	int			pid = 0;

	if (file == NULL)
		return false;
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	FreeFile(file);
	return pid == MyProcPid;
}

/* Nothing is done about an interrupt where a lock is held. */
void
feed_test_point(const char *name)
{
	char		path[MAXPGPATH];
	char		reached[MAXPGPATH];
	FILE	   *file;

	snprintf(path, sizeof(path), "test_point.%s", name);
	if (!is_held(path))
		return;
	snprintf(reached, sizeof(reached), "%s.reached", path);
	file = AllocateFile(reached, "w");
	if (file == NULL || FreeFile(file) != 0)
		elog(PANIC, "could not write \"%s\": %m", reached);
	while (is_held(path))
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
	unlink(reached);
}
