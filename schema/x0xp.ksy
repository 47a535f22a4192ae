meta:
  id: x0xp
  title: x0x decision table
  file-extension: x0xp
  endian: le
  license: Apache-2.0
doc: |
  A signed, canonical table of the commands that agents may run. docs/format.md specifies it; this file describes the
  same bytes to programs in other languages. It checks the layout only, neither signatures nor the canonical form.
seq:
  - id: payload
    type: payload
    size: payload_size
  - id: signatures
    type: signature
    repeat: expr
    repeat-expr: trailer.signature_count
instances:
  trailer:
    pos: _io.size - 16
    type: trailer
  payload_size:
    value: _io.size - 16 - trailer.signature_bytes
types:
  trailer:
    seq:
      - id: signature_count
        type: u4
      - id: signature_bytes
        type: u4
      - id: magic
        contents: "x0xsigs\n"
  signature:
    seq:
      - id: key_number
        size: 8
      - id: signature
        size: 64
      - id: global_signature
        size: 64
      - id: comment_bytes
        type: u1
      - id: trusted_comment
        type: str
        size: comment_bytes
        encoding: UTF-8
  payload:
    seq:
      - id: header
        type: header
      - id: pairs
        type: pair
        repeat: expr
        repeat-expr: header.pair_count
      - id: shapes
        type: shape
        repeat: expr
        repeat-expr: header.shape_count
      - id: templates
        type: template
        repeat: expr
        repeat-expr: header.template_count
      - id: patterns
        type: pattern
        repeat: expr
        repeat-expr: header.pattern_count
      - id: entries
        type: entry
        repeat: expr
        repeat-expr: header.entry_count
      - id: rules
        type: rule
        repeat: expr
        repeat-expr: header.rule_count
      - id: options
        type: options
        repeat: expr
        repeat-expr: header.option_count
      - id: items
        type: text
        repeat: expr
        repeat-expr: header.item_count
      - id: pieces
        size: header.piece_bytes
      - id: texts
        size: header.text_bytes
  header:
    seq:
      - id: magic
        contents: "x0xpol\r\n"
      - id: purpose
        contents: "exec-acl"
      - id: format_version
        type: u4
      - id: flags
        type: u4
      - id: policy_version
        type: u8
      - id: not_before
        type: u8
      - id: expires
        type: u8
      - id: max_stdout_bytes
        type: u8
      - id: max_stderr_bytes
        type: u8
      - id: max_stdin_bytes
        type: u8
      - id: max_duration_secs
        type: u8
      - id: warn_stdout_bytes
        type: u8
      - id: warn_stderr_bytes
        type: u8
      - id: warn_duration_secs
        type: u8
      - id: max_concurrent_per_agent
        type: u4
      - id: max_concurrent_total
        type: u4
      - id: name
        type: text
      - id: default_cwd
        type: text
      - id: audit_log_path
        type: text
      - id: audit_tasklist_id
        type: text
      - id: audience_count
        type: u4
      - id: pair_count
        type: u4
      - id: shape_count
        type: u4
      - id: template_count
        type: u4
      - id: pattern_count
        type: u4
      - id: entry_count
        type: u4
      - id: rule_count
        type: u4
      - id: option_count
        type: u4
      - id: item_count
        type: u4
      - id: piece_bytes
        type: u4
      - id: text_bytes
        type: u4
  text:
    seq:
      - id: offset
        type: u4
      - id: length
        type: u4
  pair:
    seq:
      - id: tag
        type: u4
      - id: start
        type: u4
      - id: first_shape
        type: u4
      - id: shape_count
        type: u4
      - id: key
        size: 64
  shape:
    seq:
      - id: first_template
        type: u4
      - id: template_count
        type: u4
      - id: first_pattern
        type: u4
      - id: pattern_count
        type: u4
  template:
    seq:
      - id: piece_bytes
        type: u4
      - id: after
        type: u4
  pattern:
    seq:
      - id: tag
        type: u4
      - id: start
        type: u4
      - id: pieces
        type: u4
      - id: piece_bytes
        type: u4
      - id: rule
        type: u4
  entry:
    seq:
      - id: pair
        type: u4
      - id: first_rule
        type: u4
      - id: max_duration_secs
        type: u8
      - id: description
        type: text
  rule:
    seq:
      - id: entry
        type: u4
      - id: pattern
        type: u4
      - id: options
        type: u4
  options:
    seq:
      - id: flags
        type: u4
      - id: env_count
        type: u4
      - id: writable_count
        type: u4
      - id: allow_count
        type: u4
      - id: deny_count
        type: u4
      - id: first_item
        type: u4
      - id: sha256
        size: 32
      - id: exe
        type: text
      - id: reason
        type: text
      - id: cwd
        type: text
      - id: max_duration_secs
        type: u8
      - id: max_stdout_bytes
        type: u8
      - id: max_stderr_bytes
        type: u8
      - id: max_stdin_bytes
        type: u8
      - id: limit_cpu_secs
        type: u8
      - id: limit_memory_bytes
        type: u8
      - id: limit_file_bytes
        type: u8
      - id: limit_open_files
        type: u8
      - id: limit_processes
        type: u8
