// Finds and signals every descendant of this process, whatever session or group it moved to.
//
// This process must be a child subreaper, so that nothing can leave the tree. All are stopped, each before its children
// are read, so that none can fork behind our back or react to the end of another; only then comes the signal. A process
// number is never trusted: a signal goes through a directory of /proc that was open when the parent was checked. Shown
// by tests/enforcer/tree_test.cpp.
#include "enforcer/spawn.hpp"

namespace x0x {

// Parents before their children. What does not fit is found in a later round.
struct Process {
  pid_t pid, parent;
};
static Process found[1 << 16];
static std::size_t found_count = 0;

static FILE* open_text(int directory, const char* name) {
  return fdopen(openat(directory, name, O_RDONLY | O_CLOEXEC), "r");
}

// Not from "stat", where a process can choose a name that looks like the rest of the line.
static pid_t parent_of(int process) {
  pid_t parent = -1;
  FILE* const status = open_text(process, "status");
  if (status == nullptr) return parent;
  // NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers
  for (char line[256]; fgets(line, sizeof line, status) != nullptr && sscanf(line, "PPid: %d", &parent) != 1;) continue;
  fclose(status);
  return parent;
}

// Every thread has a list of its own.
static void find_children(int directory, const char* task, pid_t pid) {
  DIR* const threads = fdopendir(openat(directory, task, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (threads == nullptr) return;
  while (const dirent* thread = readdir(threads)) {
    char name[NAME_MAX + 16];
    snprintf(name, sizeof name, "%s/children", thread->d_name);
    FILE* const list = open_text(dirfd(threads), name);
    if (list == nullptr) continue;
    // NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers
    while (found_count < std::size(found) && fscanf(list, "%d", &found[found_count].pid) == 1)
      found[found_count++].parent = pid;
    fclose(list);
  }
  closedir(threads);
}

// Signals a process that is still where it was found, or has come to us since its parent died. When it has been stopped
// its children are found too.
static void reach(const Process& target, int signal) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d", target.pid);
  const int process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Our own children keep their number until we reap them, so one that hides in /proc can still be reached by it.
  if (process < 0 && target.parent == getpid()) kill(target.pid, signal);
  const pid_t parent = parent_of(process);
  if (parent == target.parent || parent == getpid()) {
    syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0);
    if (signal == SIGSTOP) find_children(process, "task", target.pid);
  }
  close(process);
}

void signal_descendants(int signal, std::span<const pid_t> spare) {
  found_count = 0;
  find_children(AT_FDCWD, "/proc/self/task", getpid());
  for (Process& child : std::span(found, found_count))
    if (std::ranges::count(spare, child.pid) != 0) child = {};
  for (std::size_t i = 0; i < found_count; ++i) reach(found[i], SIGSTOP);  // which finds more
  for (std::size_t i = found_count; i-- > 0;) {
    reach(found[i], signal);
    reach(found[i], SIGCONT);
  }
}

int reap_strays(std::span<const pid_t> supervisors) {
  signal_descendants(SIGKILL, supervisors);
  int strays = 0;
  for (const Process& one : std::span(found, found_count))
    strays += one.parent == getpid() && waitpid(one.pid, nullptr, WNOHANG) >= 0;
  // Children, and yet none in the list: it could not be read.
  return strays + (found_count == 0 && waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) == 0);
}

}  // namespace x0x
