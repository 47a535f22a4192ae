#include "enforcer/tree.hpp"

#include "enforcer/spawn.hpp"
#include "enforcer/system.hpp"

namespace x0x {
namespace {

// Children found and not yet dealt with, those of each level above those of the level before. What does not
// fit is found in a later round.
pid_t found[1 << 16];
std::size_t found_count = 0;

FILE* open_text(int directory, const char* name) {
  const int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
  return file < 0 ? nullptr : fdopen(file, "r");
}

// Not from "stat", where a process can choose a name that looks like the rest of the line.
pid_t parent_of(int process) {
  pid_t parent = -1;
  FILE* status = open_text(process, "status");
  if (status == nullptr) return parent;
  while (fscanf(status, "PPid: %d", &parent) != 1 && fscanf(status, "%*[^\n] ") == 0) continue;
  fclose(status);
  return parent;
}

// Every thread has a list of its own.
void find_children(int process) {
  const int task = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* threads = task < 0 ? nullptr : fdopendir(task);
  if (threads == nullptr) return;
  while (const dirent* thread = readdir(threads)) {
    char name[NAME_MAX + 16];
    snprintf(name, sizeof name, "%s/children", thread->d_name);
    FILE* list = open_text(task, name);
    if (list == nullptr) continue;
    while (found_count < std::size(found) && fscanf(list, "%d", &found[found_count]) == 1) ++found_count;
    fclose(list);
  }
  closedir(threads);
}

int open_process(pid_t pid) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d", pid);
  return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool reach(int process, int signal) { return syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0) == 0; }

bool signal_tree(pid_t pid, pid_t parent, int signal, int depth) {
  const int process = open_process(pid);
  // Our own children keep their number until we reap them, so one that hides in /proc can still be reached by
  // it.
  if (process < 0) return depth == 0 && kill(pid, signal) == 0;
  const bool ours = (depth == 0 || parent_of(process) == parent) && reach(process, SIGSTOP);
  if (ours && depth < kMaxTreeDepth) {
    const std::size_t first = found_count;
    find_children(process);
    for (std::size_t i = first; i < found_count; ++i) signal_tree(found[i], pid, signal, depth + 1);
    found_count = first;
  }
  const bool reached = ours && reach(process, signal);
  if (ours && signal != SIGKILL) reach(process, SIGCONT);
  close(process);
  return reached;
}

// Two enforcers may share a cgroup; neither may touch the other's sessions.
struct CgroupName {
  char text[32];
  explicit CgroupName(std::uint32_t slot) { snprintf(text, sizeof text, "x0x-%d-%u", getpid(), slot); }
};

bool contains(std::span<const pid_t> list, pid_t pid) { return std::find(list.begin(), list.end(), pid) != list.end(); }

}  // namespace

int signal_descendants(int signal, std::span<const pid_t> spare) {
  const int self = open_process(getpid());
  found_count = 0;
  find_children(self);
  close(self);
  int reached = 0;
  for (std::size_t i = 0; i < found_count; ++i)
    if (!contains(spare, found[i]) && signal_tree(found[i], getpid(), signal, 0)) ++reached;
  return reached;
}

int reap_strays(std::span<const pid_t> supervisors) {
  for (;;) {
    int reaped = 0, left = 0;
    signal_descendants(SIGKILL, supervisors);
    for (std::size_t i = 0; i < found_count; ++i)  // still our own children
      if (!contains(supervisors, found[i])) ++(waitpid(found[i], nullptr, WNOHANG) == 0 ? left : reaped);
    if (reaped == 0) return left;  // a child that was reaped may have left us its own
  }
}

// ---- cgroups

int find_delegated_cgroup() {
  char line[PATH_MAX], own[PATH_MAX] = "", path[2 * PATH_MAX];
  FILE* groups = open_text(AT_FDCWD, "/proc/self/cgroup");
  if (groups == nullptr) return -1;
  while (fgets(line, sizeof line, groups) != nullptr) sscanf(line, "0::%4095s", own);
  fclose(groups);
  for (const char* mount : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
    snprintf(path, sizeof path, "%s%s/cgroup.procs", mount, own);
    if (own[0] != '/' || access(path, W_OK) != 0) continue;
    *strrchr(path, '/') = '\0';
    if (access(path, W_OK) == 0) return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  return -1;
}

int open_session_cgroup(int delegated, std::uint32_t slot) {
  const CgroupName name(slot);
  unlinkat(delegated, name.text,
           AT_REMOVEDIR);  // some kernels kill what is cloned into a cgroup killed before
  if (mkdirat(delegated, name.text, 0755) != 0 && errno != EEXIST) return -1;
  return openat(delegated, name.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void remove_session_cgroups(int delegated, std::uint32_t slots) {
  while (slots-- > 0) unlinkat(delegated, CgroupName(slots).text, AT_REMOVEDIR);
}

}  // namespace x0x
