#include "nodes/child.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/runtime/log.hpp"

namespace infernex::nodes {

void child::start_if_due(point now) {
  if (pid_ || !due_ || *due_ > now) return;
  std::vector<char*> arguments;
  for (auto& word : command_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t made = ::fork();
  if (made == 0) {
    // Ends with us whatever happens to us; and Ctrl-C at the terminal reaches only us, so that the order of
    // the shutdown is ours.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it has died in between
    ::setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  if (made < 0) {
    log::error("cannot start a process", {{"name", name_}});
    due_ = now + std::chrono::seconds(1);
    return;
  }
  pid_ = made;
  due_.reset();
  log::info("process started", {{"name", name_}, {"pid", made}});
}

bool child::reap(point now, bool stopping) {
  if (!pid_) return false;
  int status = 0;
  if (::waitpid(*pid_, &status, WNOHANG) != *pid_) return false;
  const auto how = WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                     : "signal " + std::to_string(WTERMSIG(status));
  pid_.reset();
  if (stopping) return true;
  if (const auto pause = restarts_.died(now)) {
    due_ = now + *pause;
    log::warn("process ended, starting it again", {{"name", name_}, {"how", how}, {"pause_ms", pause->count()}});
  } else {
    failed_ = true;
    log::error("process ends too often, giving up on it", {{"name", name_}, {"how", how}});
  }
  return true;
}

void child::signal(int number) const {
  if (pid_) ::kill(*pid_, number);
}

}  // namespace infernex::nodes
