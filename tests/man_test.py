"""The manual pages and completions say what the programs say. man_test.py SOURCE_ROOT POLICYC ENFORCER EXEC

Options are compared both ways, command by command; keys of exec-acl.toml(5) with the JSON Schema."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
POLICYC, ENFORCER, EXEC = sys.argv[2:5]
OPTION = re.compile(r"--[a-z][a-z-]*")


def help_of(*command):
    return subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout


def commands_of(*program):
    """The commands of x0x-policyc, and theirs: audit verify."""
    listed = re.search(r"\nSubcommands:\n((?:  .*\n)+)", help_of(*program))
    if not listed:
        return [program]
    names = re.findall(r"^  ([a-z]+) ", listed.group(1), re.M)
    return [command for name in names for command in commands_of(*program, name)]


def listed_options(text):
    """Those in a list of options: at the start of a line, after the short form."""
    return set(re.findall(r"^ +(?:-\w, ?)?(--[a-z-]+)", text, re.M)) - {"--help"}


def page(name):
    return (ROOT / "docs/man" / name).read_text()


def sections(text, macro):
    """Heading to text, for the sections that `macro` begins."""
    parts = re.split(rf"^\.{macro} (.*)$", text, flags=re.M)
    return {heading: re.split(r"^\.Sh ", body, flags=re.M)[0] for heading, body in zip(parts[1::2], parts[2::2])}


def documented(text, flag=r"(?:Fl|,) -([a-z][a-z-]+)"):
    return {"--" + name for line in re.findall(r"^\.(?:It|Op|Fl) .*$", text, re.M) for name in re.findall(flag, line)}


class Manual(unittest.TestCase):
    def test_every_page_passes_mandoc(self):
        pages = sorted(map(str, (ROOT / "docs/man").iterdir()))
        self.assertEqual(len(pages), 4)
        lint = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *pages], capture_output=True, text=True, timeout=60)
        self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, ""))

    def test_every_page_is_installed(self):
        build = (ROOT / "docs/meson.build").read_text()
        for path in (ROOT / "docs/man").iterdir():
            self.assertIn(f"'man/{path.name}'", build)
        for path in (ROOT / "docs").glob("*.md"):
            self.assertIn(f"'{path.name}'", build)

    def test_policyc_command_by_command(self):
        commands = commands_of(POLICYC)
        described = sections(page("x0x-policyc.1"), "Ss")
        self.assertEqual(set(described), {" ".join(command[1:]) for command in commands})
        for command in commands:
            with self.subTest(command[1:]):
                self.assertEqual(documented(described[" ".join(command[1:])]), listed_options(help_of(*command)))

    def test_enforcer(self):
        self.assertEqual(documented(page("x0x-enforcer.8")), set(OPTION.findall(help_of(ENFORCER))))

    def test_exec(self):
        text = help_of(EXEC)
        usage = set(OPTION.findall(re.search(r"usage:((?:.*\n)+?)\n", text).group(1)))
        self.assertEqual(documented(page("x0x-exec.1")) - {"--help"}, listed_options(text) | usage)

    def test_completions(self):
        for name, options in (("policyc", set.union(*(listed_options(help_of(*c)) for c in commands_of(POLICYC)))),
                              ("exec", documented(page("x0x-exec.1")))):
            folder = "client" if name == "exec" else name
            text = (ROOT / folder / "completion" / f"x0x-{name}").read_text()
            self.assertEqual(set(OPTION.findall(text)) - {"--help", "--version"}, options - {"--help", "--version"})
            subprocess.run(["bash", "-n"], input=text, text=True, check=True, timeout=60)

    def test_completion_of_policyc_at_work(self):
        def complete(*words):
            script = (f"source {ROOT}/policyc/completion/x0x-policyc; compopt() {{ :; }}; COMP_WORDS=(\"$@\"); "
                      "COMP_CWORD=$(($# - 1)); _x0x_policyc; printf '%s\\n' \"${COMPREPLY[@]}\"")
            return subprocess.run(["bash", "-c", script, "bash", "x0x-policyc", *words], capture_output=True, text=True,
                                  timeout=60, check=True, cwd=ROOT).stdout.split()
        self.assertEqual(complete("co"), ["compile"])
        self.assertEqual(complete("audit", ""), ["verify"])
        self.assertEqual(complete("check", "--format", "s"), ["sarif"])
        self.assertEqual(complete("verify", "--format", "s"), [])
        self.assertEqual(complete("check", "LICEN"), ["LICENSE"])
        self.assertEqual(complete("verify", "--tr"), ["--trust"])
        self.assertEqual(complete("explain", "p.toml", "--", "LICEN"), [])

    def test_keys_of_the_policy_are_those_of_the_schema(self):
        schema = json.loads((ROOT / "schema/exec-acl.schema.json").read_text())

        def resolve(node):
            while "$ref" in node:
                target = schema
                for part in node["$ref"].removeprefix("#/").split("/"):
                    target = target[part]
                node = target
            return resolve(node["items"]) if "items" in node else node

        tables = {"[policy]": resolve(schema["properties"]["policy"]), "[exec]": resolve(schema["properties"]["exec"])}
        tables["[[exec.allow]]"] = resolve(tables["[exec]"]["properties"]["allow"])
        tables["[[exec.allow.commands]]"] = resolve(tables["[[exec.allow]]"]["properties"]["commands"])
        tables["limits"] = resolve(tables["[[exec.allow.commands]]"]["properties"]["limits"])
        described = sections(page("exec-acl.toml.5"), "Ss")
        for heading, table in tables.items():
            with self.subTest(heading):
                lines = re.findall(r"^\.(?:It )?Cm (.*)$", described[heading], re.M)
                self.assertEqual({key for line in lines for key in re.findall(r"[a-z0-9_]+", line)},
                                 set(table["properties"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
