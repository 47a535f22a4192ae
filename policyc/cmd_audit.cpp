#include "policyc/cmd_audit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "policyc/audit_chain.hpp"
#include "policyc/commands.hpp"
#include "policyc/hex.hpp"
#include "policyc/line_reader.hpp"
#include "policyc/text.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

// Where the records of a file stand in the chain; files without one come last.
std::uint64_t first_seq_of(std::string_view start) {
  for (std::size_t end; (end = start.find('\n')) != std::string_view::npos; start.remove_prefix(end + 1))
    if (const auto record = parse_audit_record(start.substr(0, end))) return record->seq;
  return ~std::uint64_t{0};
}

void refuse_compressed(LineReader& log) {
  const std::string_view start = log.start();
  const char* const tool = start.starts_with("\x1f\x8b")           ? "zcat"
                           : start.starts_with("\x28\xb5\x2f\xfd") ? "zstdcat"
                           : start.starts_with(
                                 "\xfd"
                                 "7zXZ")
                               ? "xzcat"
                               : nullptr;
  if (tool == nullptr) return;
  throw UserError(
      fmt::format("{} is compressed; give <({} {}) instead", quote(log.path(), 200), tool, escape(log.path())));
}

std::vector<std::unique_ptr<LineReader>> open_in_order(const std::vector<std::string>& paths) {
  struct Log {
    std::uint64_t first_seq;
    std::unique_ptr<LineReader> reader;
  };
  std::vector<Log> logs;
  for (const std::string& path : paths) {
    auto reader = std::make_unique<LineReader>(path, kMaxAuditLineBytes);
    for (const Log& other : logs)
      if (other.reader->device() == reader->device() && other.reader->inode() == reader->inode())
        throw UserError(fmt::format("{} and {} are the same file", quote(other.reader->path(), 200), quote(path, 200)));
    refuse_compressed(*reader);
    logs.push_back({first_seq_of(reader->start()), std::move(reader)});
  }
  std::ranges::stable_sort(logs, {}, [](const Log& log) { return std::pair(log.first_seq, log.reader->modified()); });
  std::vector<std::unique_ptr<LineReader>> ordered;
  ordered.reserve(logs.size());
  for (Log& log : logs) ordered.push_back(std::move(log.reader));
  return ordered;
}

// A line on a terminal that is written over; nothing for the first second.
class Progress {
 public:
  Progress(bool wanted, std::uint64_t total) : wanted_(wanted), total_(total) {}
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  void at(std::uint64_t done, const std::string& path) {
    if (!wanted_ || done < next_) return;
    next_ = done + (8u << 20);
    const auto now = std::chrono::steady_clock::now();
    if (now < due_) return;
    due_ = now + std::chrono::milliseconds(200);
    shown_ = true;
    const std::string of = total_ >= done ? fmt::format(" of {}", total_ >> 20) : "";
    fmt::print(stderr, "\r\033[K{}: {}{} MiB", escape(path), done >> 20, of);
    std::fflush(stderr);
  }

 private:
  bool wanted_, shown_ = false;
  std::uint64_t total_, next_ = 0;
  std::chrono::steady_clock::time_point due_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

AuditFindings follow(std::vector<std::unique_ptr<LineReader>>& logs, const AuditAnchor& anchor, bool wants_progress) {
  std::uint64_t total = 0, done = 0;
  for (const auto& log : logs) total += log->size();
  Progress progress(wants_progress, total);
  AuditChain chain(anchor);
  Line line;
  for (auto& log : logs) {
    chain.begin_file();
    while (log->next(line)) {
      chain.line(line.text, line.ended, line.number, line.offset);
      progress.at(done + log->taken(), log->path());
    }
    done += log->taken();
  }
  return chain.finish();
}

using Paths = std::vector<std::string>;

std::string human_summary(const AuditFindings& found, const Paths& files, bool with_head) {
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<9} {}\n", name, value);
  };
  for (const std::string& file : files) row(&file == &files[0] ? "files" : "", escape(file));
  row("records", fmt::format("{}, seq {} to {}", found.records, found.first_seq, found.last_seq));
  if (found.first_seq > 0) row("", "older files were not given");
  row("time", fmt::format("{} to {}", found.first_ts, found.last_ts));
  if (found.torn_lines > 0)
    row("crashes",
        fmt::format("left {}, as the records after say", count_of(found.torn_lines, "torn line", "torn lines")));
  if (found.written_again > 0)
    row("repeated", fmt::format("{} after a disk failed", count_of(found.written_again, "record", "records")));
  if (found.unfinished_bytes > 0)
    row("unended", fmt::format("{} at the end: a write under way, or a crash that the next start will note",
                               count_of(found.unfinished_bytes, "byte", "bytes")));
  if (with_head) row("found", fmt::format("the given head is seq {}", *found.head_seq));
  row("head", to_hex(found.head.bytes));
  return text;
}

std::string human_break(const AuditBreak& broken, const Paths& files) {
  const AuditPlace& place = broken.place;
  std::string text = fmt::format("{}:{}: {}: {}\n", escape(files[place.file]), place.line,
                                 kAuditBreakNames[static_cast<std::size_t>(broken.kind)], broken.meaning);
  text += fmt::format("  {:<9} byte {}{}\n", "at", place.offset,
                      broken.seq ? fmt::format(", seq {}", *broken.seq) : std::string());
  text += fmt::format("  {:<9} {}\n  {:<9} {}\n", "expected", broken.expected, "found", broken.found);
  return text;
}

nlohmann::ordered_json to_json(const AuditFindings& found, const Paths& files) {
  const bool any = found.records > 0;
  const auto known = [&](auto value) { return any ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr); };
  nlohmann::ordered_json json = {{"intact", found.break_count == 0},
                                 {"files", files},
                                 {"records", found.records},
                                 {"first_seq", known(found.first_seq)},
                                 {"last_seq", known(found.last_seq)},
                                 {"first_ts", known(found.first_ts)},
                                 {"last_ts", known(found.last_ts)},
                                 {"head", known(to_hex(found.head.bytes))},
                                 {"given_head_seq", nullptr},
                                 {"torn_lines", found.torn_lines},
                                 {"written_again", found.written_again},
                                 {"unfinished_bytes", found.unfinished_bytes},
                                 {"break_count", found.break_count},
                                 {"breaks", nlohmann::ordered_json::array()}};
  if (found.head_seq) json["given_head_seq"] = *found.head_seq;
  for (const AuditBreak& broken : found.breaks) {
    json["breaks"].push_back({{"kind", kAuditBreakNames[static_cast<std::size_t>(broken.kind)]},
                              {"file", files[broken.place.file]},
                              {"line", broken.place.line},
                              {"offset", broken.place.offset},
                              {"seq", nullptr},
                              {"expected", broken.expected},
                              {"found", broken.found},
                              {"meaning", broken.meaning}});
    if (broken.seq) json["breaks"].back()["seq"] = *broken.seq;
  }
  return json;
}

}  // namespace

int run_audit_verify(const AuditVerifyOptions& options, std::ostream& out, std::ostream& err) {
  AuditAnchor anchor{std::nullopt, options.min_seq};
  if (!options.head.empty()) {
    anchor.head = parse_digest(options.head);
    if (!anchor.head)
      throw UserError(fmt::format("--head {}: a digest is 64 lower-case hexadecimal digits", quote(options.head)));
  }
  auto logs = open_in_order(options.logs);
  const AuditFindings found = follow(logs, anchor, options.progress);
  Paths files;
  for (const auto& log : logs) files.push_back(log->path());

  const bool intact = found.break_count == 0;
  if (options.json) {
    out << to_json(found, files).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (intact) {
    out << "intact\n" << human_summary(found, files, anchor.head.has_value());
  } else {
    for (const AuditBreak& broken : found.breaks) err << human_break(broken, files);
    err << fmt::format("broken: {} in {}\n", count_of(found.break_count, "break", "breaks"),
                       count_of(found.records, "record", "records"));
  }
  out.flush();
  if (!out) throw UserError("cannot write to standard output");
  return intact ? kExitOk : kExitRefused;
}

void add_audit_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* audit = app.add_subcommand("audit", "Prove that an audit log is whole");
  audit->require_subcommand(1);
  audit->footer(
      "Example:\n  x0x-policyc audit verify /var/log/x0x/exec.log*\n\n`x0x-policyc audit verify --help` says more.");
  CLI::App* verify = audit->add_subcommand("verify", "Follow the hash chain of a log through all its files");
  const auto options = std::make_shared<AuditVerifyOptions>();
  verify->add_option("LOG", options->logs, "The log and its rotated files, in any order; - reads standard input")
      ->required();
  verify->add_option("--head", options->head, "A head printed earlier: the record with this digest must still be there")
      ->type_name("DIGEST");
  add_number_option(*verify, "--min-seq", options->min_seq, 0, UINT64_MAX,
                    "The last record must have this seq or a later one");
  add_format_option(*verify, options->json);
  verify->footer(
      "Each record names the digest of the one before, so a line that was changed, removed, moved or put in is found\n"
      "and named. Only an end that was cut off or written anew cannot be seen: keep the head that is printed\n"
      "somewhere else, and give it the next time.\n\n"
      "Example:\n"
      "  x0x-policyc audit verify /var/log/x0x/exec.log* --format json | jq -r .head > yesterday\n"
      "  x0x-policyc audit verify /var/log/x0x/exec.log* --head $(cat yesterday)\n"
      "  x0x-policyc audit verify /var/log/x0x/exec.log <(zcat /var/log/x0x/exec.log.1.gz)\n\n"
      "Exit status: 0 intact, 1 broken, 2 usage or I/O.");
  verify->callback([options, &run] {
    options->progress = isatty(STDERR_FILENO) == 1;
    run = [options] { return run_audit_verify(*options, std::cout, std::cerr); };
  });
}

}  // namespace x0x::policyc
