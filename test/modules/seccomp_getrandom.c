/*
 * seccomp_getrandom.c
 *	  SQL-callable functions that make the system call getrandom fail in the
 *	  session that calls them, whoever makes it: the C library, the vDSO, or
 *	  syscall().
 *
 *	  A seccomp filter cannot be taken away again.  So this one turns the call
 *	  into a signal, whose handler answers in the kernel's place: with the
 *	  error that is set, or with what the true call returns, which the filter
 *	  knows by its sixth argument (getrandom has three).
 */
#include "postgres.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "fmgr.h"

PG_MODULE_MAGIC;

#define LET_THROUGH		0x5EED5EED

#define VDSO_SIZE_MAX	0x10000
#define VDSO_KEY_SIZE	32		/* of ChaCha20 */

/* Errors answered to one setting; more, and a caller never stops: end the test. */
#define MAX_FAILURES	1000000

#if defined(__x86_64__)
#define ARCHITECTURE	AUDIT_ARCH_X86_64
#define ARGUMENT(context, n)	\
	((context)->uc_mcontext.gregs[(n) == 0 ? REG_RDI : (n) == 1 ? REG_RSI : REG_RDX])
#define RESULT(context)	((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define ARCHITECTURE	AUDIT_ARCH_AARCH64
#define ARGUMENT(context, n)	((context)->uc_mcontext.regs[n])
#define RESULT(context)	((context)->uc_mcontext.regs[0])
#else
#define ARCHITECTURE	0
#define ARGUMENT(context, n)	((context) != NULL ? 0 : (n))
#define RESULT(context)	(*(long *) (context))
#endif

PG_FUNCTION_INFO_V1(getrandom_fault);
PG_FUNCTION_INFO_V1(getrandom_short);
PG_FUNCTION_INFO_V1(drop_vdso_state);

static volatile int fault_error = 0;	/* errno; 0: none */
static volatile int fault_times = 0;	/* calls that still fail; below 0: all */
static volatile int fault_failures = 0;
static volatile long most_bytes = 0;	/* that a call delivers; 0: no limit */

/*
 * Does a kernel whose generator is not seeded let the call wait?  The vDSO knows
 * that this one is seeded, and so asks for a key before it passes on a call.
 */
static bool
may_wait(const ucontext_t *caller, const siginfo_t *info)
{
	uintptr_t	vdso = getauxval(AT_SYSINFO_EHDR);
	bool		for_key = ARGUMENT(caller, 1) == VDSO_KEY_SIZE &&
		(uintptr_t) info->si_call_addr - vdso < VDSO_SIZE_MAX;

	return !(ARGUMENT(caller, 2) & GRND_NONBLOCK) && !for_key;
}

/*
 * The error to answer with; 0: none.
 */
static int
error_for(const ucontext_t *caller, const siginfo_t *info)
{
	if (fault_error == 0 || fault_times == 0)
		return 0;
	if (fault_times > 0)
		fault_times--;
	if (++fault_failures > MAX_FAILURES || (fault_error == EAGAIN && may_wait(caller, info)))
		abort();
	return fault_error;
}

static void
answer(int signal pg_attribute_unused(), siginfo_t *info, void *context)
{
	ucontext_t *caller = context;
	int			saved_errno = errno;
	int			error = error_for(caller, info);
	long		len = ARGUMENT(caller, 1);
	long		result;

	if (error != 0)
	{
		RESULT(caller) = -error;
		errno = saved_errno;
		return;
	}
	if (most_bytes > 0)
		len = Min(len, most_bytes);
	result = syscall(SYS_getrandom, ARGUMENT(caller, 0), len, ARGUMENT(caller, 2), 0, 0, LET_THROUGH);
	RESULT(caller) = result < 0 ? -errno : result;
	errno = saved_errno;
}

static void
install_filter(void)
{
	static bool installed = false;
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LET_THROUGH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = lengthof(instructions),
		.filter = instructions,
	};
	struct sigaction action = {
		.sa_sigaction = answer,
		.sa_flags = SA_SIGINFO,
	};

	if (installed)
		return;
	if (ARCHITECTURE == 0)
		ereport(ERROR, (errmsg("no seccomp filter is known for this machine")));
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGSYS, &action, NULL) != 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		ereport(ERROR, (errmsg("could not install a seccomp filter: %m")));
	installed = true;
}

/*
 * getrandom_fault(error integer, times integer) returns boolean
 *
 * The next calls, as many as given (-1: all), fail with this errno; 0: none
 * does.  EAGAIN: as before the kernel's generator is seeded.  Returns true, so that it
 * can be called in a WHERE clause.
 */
Datum
getrandom_fault(PG_FUNCTION_ARGS)
{
	install_filter();
	fault_error = PG_GETARG_INT32(0);
	fault_times = PG_GETARG_INT32(1);
	fault_failures = 0;
	PG_RETURN_BOOL(true);
}

/*
 * getrandom_short(bytes integer) returns boolean
 *
 * No call delivers more than this; 0: as many as are asked for.
 */
Datum
getrandom_short(PG_FUNCTION_ARGS)
{
	install_filter();
	most_bytes = PG_GETARG_INT32(0);
	PG_RETURN_BOOL(true);
}

/*
 * drop_vdso_state() returns boolean
 *
 * Empty the memory that holds the vDSO's generators, as the kernel may at any
 * time, so that the next request needs a system call.  False: there is none.
 */
Datum
drop_vdso_state(PG_FUNCTION_ARGS pg_attribute_unused())
{
	FILE	   *smaps = fopen("/proc/self/smaps", "r");
	char		line[1024];
	unsigned long start = 0;
	unsigned long end = 0;
	bool		dropped = false;

	if (smaps == NULL)
		ereport(ERROR, (errmsg("could not open /proc/self/smaps: %m")));
	while (fgets(line, sizeof(line), smaps) != NULL)
	{
		unsigned long first;
		unsigned long last;

		if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
		{
			start = first;
			end = last;
		}
		else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dp") != NULL)
			dropped |= madvise((void *) start, end - start, MADV_DONTNEED) == 0;
	}
	fclose(smaps);
	PG_RETURN_BOOL(dropped);
}
