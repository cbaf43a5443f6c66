/*
 * require_session.h
 *	  Which processes may generate UUIDs, or use their order.
 */
#ifndef FUUID_REQUIRE_SESSION_H
#define FUUID_REQUIRE_SESSION_H

extern bool fuuid_is_session;

extern void fuuid_check_session(const char *what);

/* Raise an error, "cannot <what> in ...", if this process is no session. */
static inline void
fuuid_require_session(const char *what)
{
	if (unlikely(!fuuid_is_session))
		fuuid_check_session(what);
}

#endif							/* FUUID_REQUIRE_SESSION_H */
