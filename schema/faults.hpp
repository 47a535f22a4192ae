// Every fault by name, with what a person reads about it. Scripts match the names: they never change their meaning.
// docs/format.md and the manual pages say when each is reported; tests/enforcer/verify_test.cpp holds them apart.
#pragma once

#define X0X_FAULTS(F)                                                                                              \
  F(none, "no fault")                                                                                              \
  F(too_large, "the file is larger than a decision table may be")                                                  \
  F(bad_magic, "this is not a decision table")                                                                     \
  F(unknown_version, "the table has a format version that this program does not know")                             \
  F(wrong_purpose, "the signed file is not a command policy")                                                      \
  F(bad_signature_block, "the signature block is damaged")                                                         \
  F(unsigned_table, "the table carries no signature")                                                              \
  F(untrusted_key, "no signature was made by a pinned key")                                                        \
  F(bad_signature, "a signature by a pinned key does not match the table")                                         \
  F(threshold_not_met, "too few pinned keys have signed the table")                                                \
  F(trust_too_large, "the trust file is too large")                                                                \
  F(trust_no_keys, "the trust file holds no key")                                                                  \
  F(trust_bad_line, "the trust file has a line that is neither a key nor a threshold")                             \
  F(trust_bad_key, "the trust file has a key that is not a minisign public key")                                   \
  F(trust_duplicate_key, "the trust file names a key twice")                                                       \
  F(trust_too_many_keys, "the trust file names too many keys")                                                     \
  F(trust_bad_threshold, "the trust file's threshold is not between 1 and the number of keys")                     \
  F(truncated, "the table ends too early")                                                                         \
  F(trailing_bytes, "the table goes on after its end")                                                             \
  F(bad_count, "the table's counts contradict each other")                                                         \
  F(bad_flags, "the table sets a flag that does not exist")                                                        \
  F(bad_padding, "the table's padding is not zero")                                                                \
  F(bad_cap, "the table's caps contradict each other")                                                             \
  F(bad_window, "the table's validity window is empty")                                                            \
  F(bad_text, "a text of the table is out of order, unterminated or not UTF-8")                                    \
  F(bad_path, "a path of the table is not absolute")                                                               \
  F(bad_item, "a list of the table is out of order or malformed")                                                  \
  F(bad_entry, "an entry of the table points outside it")                                                          \
  F(bad_rule, "a rule of the table points to the wrong place")                                                     \
  F(bad_options, "a rule's options are empty or contradict each other")                                            \
  F(bad_pair, "a pair of the table points to the wrong place")                                                     \
  F(bad_shape, "a shape of the table is malformed or belongs to no rule")                                          \
  F(bad_piece, "a token of the table is malformed")                                                                \
  F(bad_order, "shapes of the table are out of order or doubled")                                                  \
  F(too_many_shapes, "a pair of the table has more shapes than a decision may try")                                \
  F(bad_slot, "the table's index does not match its pairs and rules")                                              \
  F(missing, "there is no such file")                                                                              \
  F(unreadable, "the file cannot be read")                                                                         \
  F(symlink, "the file is a symbolic link; name the file itself")                                                  \
  F(not_a_file, "this is not a regular file")                                                                      \
  F(wrong_owner, "the file must belong to root or to the user that runs the enforcer")                             \
  F(wrong_mode, "the file must not be writable by group or others")                                                \
  F(not_yet_valid, "the policy is not valid yet")                                                                  \
  F(expired, "the policy has expired")                                                                             \
  F(bad_clock, "the clock is before 2020 and the policy has a validity window; set the clock")                     \
  F(wrong_audience, "the policy is not for this node; `--node` names it")                                          \
  F(lower_version, "a policy with a higher version has been loaded on this node")                                  \
  F(same_version_other_content, "a policy with this version and other content has been loaded; raise its version") \
  F(state_damaged, "the record of the highest version is damaged")                                                 \
  F(state_not_writable, "the record of the highest version cannot be written")                                     \
  F(audit_not_writable, "the audit log cannot be opened or written")                                               \
  F(audit_in_use, "another enforcer writes this audit log")                                                        \
  F(audit_not_ours, "the audit log does not end in a record of this program; move the file aside")                 \
  F(socket_in_use, "another enforcer listens on this socket")                                                      \
  F(socket_not_possible, "the socket cannot be made")                                                              \
  F(setuid, "this program must not be setuid, setgid or given capabilities")                                       \
  F(no_child_lists, "this kernel does not list the children of a process (CONFIG_PROC_CHILDREN)")
