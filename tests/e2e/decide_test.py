"""Who may run what: the order of the decision, every reason for a denial, and the templates, through the socket."""

from harness import Case, main


class Decide(Case):
    def test_an_allowed_command_runs_and_a_denied_one_does_not(self):
        node, connection = self.started(["echo", "<INT>"])
        self.assert_ok(connection.request(["echo", "42"]), b"42\n")
        self.assert_denied(connection.request(["echo", "x"]), "argv_not_allowed")
        self.assertEqual([r["event"] for r in node.audit()], ["policy_loaded", "request", "started", "exit", "denial"])


if __name__ == "__main__":
    main()
