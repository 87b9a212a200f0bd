# How the tests share the machine. Read by ctest, not by CMake.
#
# Most tests mostly wait, for processes and for deadlines. So a job of ctest stands for a sixth of a core: a machine
# with two cores gets twelve jobs (sanitizers: sixteen, because their tests wait more; CMakePresets.json). A test that
# uses more than 55 % of a core takes four jobs; one that uses more than 33 % takes two. These tests also get more time,
# for slow machines.
function(takes jobs)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS ${jobs} TIMEOUT 900)
endfunction()
takes(4
  bench_network compare_truth conformance_models conformance_ucx_hosts conformance_ucx_hosts_tcp ddp_amp ddp_checkpoint
  ddp_split e2e_cifar e2e_clusters e2e_dp e2e_learning e2e_model e2e_torchrun e2e_ucx_gpu example_pytorch
  example_tune_optuna examples examples_library gpu_checks_fake_gpu gpu_run headers image_folder_parity image_parity install
  launch_torchrun page_writing_a_backend page_writing_a_model parity_mnist parity_resnet18 parity_three_ranks
  parity_two_ranks python_accelerate python_lightning shm)
takes(2
  bench bench_peers checkpoint_parity comm_ucx conformance_gloo_hosts conformance_gloo_processes
  conformance_gloo_threads conformance_good_threads conformance_nccl_fake_gpu_processes
  conformance_nccl_fake_gpu_threads conformance_shm_processes conformance_shm_threads
  conformance_ucx_fake_gpu_processes conformance_ucx_fake_gpu_threads conformance_ucx_processes
  conformance_ucx_threads container ddp ddp_checkpoint_parity ddp_steps documented_dataset doctor e2e_cli e2e_compare e2e_cuda
  e2e_data e2e_data_info e2e_launchers e2e_resume e2e_survival e2e_train e2e_training e2e_virtual_ranks examples_asan faults_quick_0
  faults_quick_1 fetch gpu_checks library_parity models_logits_parity models_weights_parity packages parity_one_process report report_browser
  report_browser_runs sampler_parity site sync_batch_norm zero zero_parity)

# The long ones come first, in this order, so that none is left at the end when the machine has nothing else to do.
set(cost 1000)
foreach(test IN ITEMS
    wheels_build packages shm examples bench_peers e2e_resume bench_network library_parity ddp ddp_steps e2e_faults zero_parity
    parity_resnet18 page_writing_a_backend conformance_ucx_hosts headers examples_asan examples_library e2e_engines
    conformance_gloo_hosts conformance_gloo_processes e2e_cifar e2e_clusters conformance_ucx_hosts_tcp e2e_model
    conformance_ucx_processes page_writing_a_model e2e_launchers e2e_compare_hosts faults_quick_0 faults_quick_1 e2e_torchrun e2e_cuda
    e2e_cli ddp_checkpoint comm_ucx e2e_compare parity_two_ranks e2e_nodes fetch ddp_launchers
    conformance_ucx_fake_gpu_processes train conformance_ucx_fake_gpu_threads ddp_split e2e_learning
    conformance_nccl_fake_gpu_processes parity_three_ranks sync_batch_norm_parity models_logits_parity)
  set_tests_properties(${test} PROPERTIES COST ${cost})
  math(EXPR cost "${cost} - 10")
endforeach()
