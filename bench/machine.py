"""Where a run was made."""

import json
import os
import platform
import re
import subprocess
import time


def _first(path, pattern, default='unknown'):
    try:
        with open(path, encoding='utf-8') as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1).strip() if found else default


def describe(connection, rounds):
    """What to know of the machine and the server beside any figure."""
    openssl = subprocess.run(['openssl', 'version'], check=True, capture_output=True, text=True).stdout
    model = _first('/proc/cpuinfo', r'^model name\s*: (.*)')
    virtual = ', virtual machine' if _first('/proc/cpuinfo', r'^flags.*\b(hypervisor)\b', '') else ''
    kib = int(_first('/proc/meminfo', r'^MemTotal:\s*(\d+)', '0'))
    return {
        'PostgreSQL': connection.execute('SHOW server_version').fetchone()[0],
        'Architecture': platform.machine(),
        'CPU': f'{model}, {os.cpu_count()} processors{virtual}',
        'Memory': f'{kib / 2 ** 20:.0f} GiB',
        'Kernel': platform.release(),
        'Clock source': _first('/sys/devices/system/clocksource/clocksource0/current_clocksource', '(.*)'),
        'C library': ' '.join(platform.libc_ver()),
        'OpenSSL': openssl.split()[1],
        'getrandom': connection.execute(
            "SELECT implementation FROM fast_uuid_sources() WHERE name = 'getrandom'").fetchone()[0],
        'Rounds': str(rounds),
        'Date': time.strftime('%Y-%m-%d'),
    }


def write(machine, path):
    with open(path, 'w', encoding='ascii') as file:
        json.dump(machine, file, indent=2)
        file.write('\n')


def read(path):
    with open(path, encoding='ascii') as file:
        return json.load(file)
