# How the tests share the machine. Read by ctest, not by CMake.
#
# One of ctest's jobs is half a core (CMakePresets.json gives four). Most tests wait for about half of their time: for
# programs to start and to end, for deadlines to pass. The following compute all the time and take two jobs, and time for
# a machine that is several times slower.
foreach(test IN ITEMS
    bench_peers checkpoint_parity comm_ucx compare_truth documented_dataset
    e2e_cifar e2e_cli e2e_compare e2e_cuda e2e_cuda_graph e2e_data e2e_data_info e2e_dp e2e_launchers e2e_learning e2e_model
    e2e_resume e2e_torchrun e2e_train e2e_training e2e_ucx_gpu example_tune_optuna gpu_checks_fake_gpu image_folder_parity
    image_parity launch_torchrun models_logits_parity models_weights_parity parity_mnist parity_one_process
    parity_resnet18 parity_three_ranks parity_two_ranks report sampler_parity shm)
  set_tests_properties(${test} PROPERTIES PROCESSORS 2 TIMEOUT 900)
endforeach()

# The long ones come first, in this order, so that none is left alone at the end.
set(cost 1000)
foreach(test IN ITEMS
    parity_resnet18 e2e_cifar e2e_resume bench_peers conformance_gloo_processes conformance_gloo_threads
    e2e_compare parity_two_ranks e2e_cuda e2e_model conformance_ucx_processes conformance_ucx_threads
    e2e_train e2e_cli parity_three_ranks e2e_learning conformance_ucx_networks
    comm_ucx shm conformance_nccl_fake_gpu_processes conformance_nccl_fake_gpu_threads
    e2e_data_info e2e_torchrun fetch conformance_good_processes
    compare_truth parity_mnist parity_one_process example_tune_optuna conformance_good_threads)
  set_tests_properties(${test} PROPERTIES COST ${cost})
  math(EXPR cost "${cost} - 10")
endforeach()
