"""The mutants that somebody has judged to be equivalent: test/mutants/equivalent."""


class Judged:
    def __init__(self, path):
        self.reasons = {}
        with open(path) as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\n")
                if not line or line.startswith("#"):
                    continue
                fields = line.split(" :: ")
                if len(fields) != 5 or not all(field.strip() for field in fields[:3] + fields[4:]):
                    raise SystemExit("%s, line %d: not \"file :: where :: original :: changed :: reason\"" % (path, number))
                self.reasons[" :: ".join(fields[:4])] = fields[4]

    def __contains__(self, mutant):
        return mutant.key in self.reasons

    def stale(self, mutants):
        """The lines that fit none of all mutants."""
        return sorted(set(self.reasons) - {mutant.key for mutant in mutants})
