"""A mutant of an SQL script: can it be installed, and does it create anything else?"""

import hashlib
import os
import re
import subprocess

from objects import FAILS, SAME, write

# All that belongs to the extension, as it is defined, without its numbers.
CREATED = """
SELECT pg_get_functiondef(p.oid), p.prorows, p.procost, p.proacl, obj_description(p.oid, 'pg_proc')
  FROM pg_proc AS p JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid
 WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fast_uuid')
 ORDER BY p.oid::regprocedure::text;
SELECT c.oid::regclass, relkind, relacl, obj_description(c.oid, 'pg_class'), pg_get_viewdef(c.oid),
       (SELECT (seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle, seqtypid) FROM pg_sequence WHERE seqrelid = c.oid)
  FROM pg_class AS c JOIN pg_depend ON classid = 'pg_class'::regclass AND objid = c.oid
 WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fast_uuid')
 ORDER BY 1::text;
SELECT extconfig::regclass[], extcondition, extrelocatable FROM pg_extension WHERE extname = 'fast_uuid';
"""


def installed(slot, name):
    """Where the slot's server reads the script."""
    if not hasattr(slot, "extension_folder"):
        sharedir = subprocess.run([slot.environment["PG_CONFIG"], "--sharedir"], check=True, stdout=subprocess.PIPE,
                                  universal_newlines=True).stdout.strip()
        slot.extension_folder = slot.install + sharedir + "/extension"
    return os.path.join(slot.extension_folder, os.path.basename(name))


def put(slot, name, text):
    write(slot.path(name), text)
    write(installed(slot, name), text)


def creation(name):
    """The commands that run a script."""
    versions = re.match(r".*fast_uuid--(.*)\.sql$", name).group(1).split("--")
    commands = ["CREATE EXTENSION fast_uuid VERSION '%s'" % versions[0]]
    if len(versions) > 1:
        commands.append("ALTER EXTENSION fast_uuid UPDATE TO '%s'" % versions[1])
    return ";".join(["BEGIN"] + commands + [CREATED, "ROLLBACK"])


def created(slot, name):
    """The hash of all that the script creates; None where it fails."""
    if not slot.server_is_up and not slot.start_server():
        raise RuntimeError("the server does not start: " + slot.said(20))
    status = slot.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", creation(name)], 60, **slot.to_server())
    if status != 0:
        return None
    with open(slot.log, "rb") as log:
        return hashlib.sha256(log.read()).hexdigest()


def check(slot, original, mutant):
    """FAILS, SAME, or what tells it from other mutants."""
    if mutant.file not in original:
        original[mutant.file] = created(slot, mutant.file)
        if original[mutant.file] is None:
            raise RuntimeError("%s does not run: %s" % (mutant.file, slot.said(20)))
    put(slot, mutant.file, mutant.text())
    try:
        found = created(slot, mutant.file)
    finally:
        put(slot, mutant.file, mutant.source.text)
    if found is None:
        return FAILS
    return SAME if found == original[mutant.file] else {mutant.file: found}
