/*
 * ordering.c
 *	  Which order is in force, and the ways to the wider ones.
 */
#include "postgres.h"

#include "clock.h"
#include "ordering.h"
#include "ordering_instance.h"
#include "settings.h"

int			fuuid_ordering_scope = FUUID_ORDERING_SESSION;
bool		fuuid_ordering_alone = true;

/*
 * Take over the scope of fast_uuid.ordering.
 */
void
fuuid_ordering_set_scope(OrderingScope scope)
{
	fuuid_ordering_scope = scope;
	fuuid_ordering_alone = scope == FUUID_ORDERING_SESSION && !fuuid_instance_entered();
}

/*
 * fuuid_ordering_reserve() where other backends have a say: under a wider order
 * than the session's, or after it, because the instance may have been reset.
 */
void
fuuid_ordering_reserve_shared(struct timespec *now, uint32 count)
{
	if (likely(fuuid_ordering_scope == FUUID_ORDERING_INSTANCE))
		fuuid_instance_reserve(now, count);
	else if (fuuid_ordering_scope == FUUID_ORDERING_SESSION)
	{
		/* A reading of the clock from before the reset does not count either. */
		if (fuuid_instance_follow_reset())
			fuuid_clock_read(now);
		fuuid_session_reserve(now, count);
	}
	else
		fuuid_settings_unknown_ordering();
}

/*
 * Give up the order with earlier values: of this backend, and under the order
 * of the instance for all.
 */
void
fuuid_ordering_reset(void)
{
	if (fuuid_ordering_scope == FUUID_ORDERING_UNKNOWN)
		fuuid_settings_unknown_ordering();
	if (fuuid_ordering_scope == FUUID_ORDERING_INSTANCE)
		fuuid_instance_reset();
	fuuid_session_reset();
}
