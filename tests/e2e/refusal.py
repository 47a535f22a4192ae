"""A test of something that the enforcer refuses to start with."""

from harness import Case

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]  # as a wrapper, when we are root


class Refusal(Case):
    """assert_refused() also asks --check, which must say the same."""

    def assert_refused(self, node, fault, blamed=None, check=True):
        for more in ([], ["--check"]) if check else ([],):
            done = node.refuse(*more)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertRegex(done.stderr, rf"^x0x-enforcer: [^\n]*: {fault}: [^\n]+\n\Z")
            self.assertTrue(done.stderr.startswith(f"x0x-enforcer: {blamed or node.policy_file}: "), done.stderr)
        self.assertEqual(node.processes(), [])

    def assert_accepted(self, node):
        done = node.refuse("--check")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def compiled(self, *argvs):
        node = self.node(*argvs or (["true"],))
        node.compile()
        return node
