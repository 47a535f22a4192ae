// What the clients of the session target say and see, and whether it is what docs/wire.md and docs/audit.md promise.
#pragma once

#include "client/codec.hpp"
#include "fuzz/world.hpp"

namespace x0x::fuzz {

inline constexpr std::uint64_t kStdoutCap = 40'000, kStderrCap = 100;
inline constexpr std::uint32_t kMaxPerAgent = 2, kMaxTotal = 3;

class Witness : public World {
 public:
  bool stopped_early = false;        // by a signal of the story
  bool everything_answered = false;  // all was quiet while everybody could read

  void check_all(bool log_complete) const;
  void spawned(const Child& child) override;

 protected:
  void request(Connection& c, std::uint8_t how, std::uint32_t timeout_ms);
  void follow_up(Connection& c, std::size_t which, bool cancel);
  void spoil(Connection& c, Bytes bytes);
  void leave(Connection& c, bool reset);
  void write_output(Child& child, std::size_t stream, std::uint64_t bytes);
  void raise_signal(int signal);

 private:
  struct Asked {
    client::Session session;
    const Connection* by = nullptr;
  };
  struct Seen;
  void check_answers(const Connection& c) const;
  void check_frame(Seen& seen, const client::Answer& answer, std::uint64_t by) const;
  void check_log(bool complete) const;
  std::size_t durable_ends(const client::RequestId& id, std::uint64_t by) const;

  std::vector<Asked> asked_;  // by serial - 1
  std::vector<const Connection*> spoilt_;
};

}  // namespace x0x::fuzz
