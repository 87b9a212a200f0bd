/* A shared library that is not a plugin. */
int ddprun_fake_nothing(void);
__attribute__((visibility("default"))) int ddprun_fake_nothing(void) {
  return 0;
}
