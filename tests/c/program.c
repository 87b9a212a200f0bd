/* The example of ddprun/ddprun.h as a whole program: two ranks, which are processes, add their numbers over shm. A pipe
 * in each direction is the allgather. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ddprun/ddprun.h"

struct Pipes {
  int rank, in, out;
};

static ddprun_status allgather(void* context, const void* send, uint64_t bytes, void* recv) {
  const struct Pipes* pipes = context;
  if (write(pipes->out, send, bytes) != (ssize_t)bytes) return DDPRUN_INTERNAL;
  char* const all = recv;
  char* const theirs = all + (1 - pipes->rank) * bytes;
  memcpy(all + pipes->rank * bytes, send, bytes);
  for (uint64_t got = 0; got < bytes;) {
    const ssize_t more = read(pipes->in, theirs + got, bytes - got);
    if (more <= 0) return DDPRUN_PEER_LOST;
    got += (uint64_t)more;
  }
  return DDPRUN_OK;
}

static int failed(void) {
  fprintf(stderr, "%s\n", ddprun_error());
  return 1;
}

static int run(struct Pipes pipes) {
  ddprun_group_options options = {sizeof options};
  options.rank = pipes.rank;
  options.size = 2;
  options.device = -1;
  options.timeout_ms = 30000;
  options.check = 1;
  options.backend = "shm";
  options.context = &pipes;
  options.allgather = allgather;
  ddprun_group* group;
  if (ddprun_group_create(&options, &group) != DDPRUN_OK) return failed();

  float numbers[3] = {1, 2, (float)pipes.rank};
  ddprun_collective call = {sizeof call, DDPRUN_FLOAT32, DDPRUN_SUM};
  call.send = call.recv = numbers;
  call.count = 3;
  ddprun_work* work;
  if (ddprun_start(group, DDPRUN_ALLREDUCE, &call, 1, &work) != DDPRUN_OK) return failed();
  while (!ddprun_wait(work, 100)) {
  }
  if (ddprun_result(work, NULL) != DDPRUN_OK) return failed();
  ddprun_release(work);
  ddprun_group_destroy(group);
  ddprun_finish();
  printf("rank %d: %g %g %g\n", pipes.rank, numbers[0], numbers[1], numbers[2]);
  return numbers[0] == 2 && numbers[1] == 4 && numbers[2] == 1 ? 0 : 1;
}

int main(void) {
  int up[2], down[2], status = 1;
  if (pipe(up) != 0 || pipe(down) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) _exit(run((struct Pipes){1, down[0], up[1]}));
  const int mine = run((struct Pipes){0, up[0], down[1]});
  waitpid(child, &status, 0);
  return mine != 0 || status != 0;
}
