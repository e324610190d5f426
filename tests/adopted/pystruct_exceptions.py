"""PyStruct's tests and examples that do not pass on our classes, each with the reason."""

_ENERGY = "wants minus the energy as the energy of MultiClassClf"
_SWITCH = "wants switch_to to change the model that was passed to the learner"
_DEFAULTS = "wants the last iterate, in the order of the samples: ours is averaged and shuffled"
_SIZES = "wants an error where n_states is larger than the number of labels in the data"
_SUBGRADIENT = "SubgradientLatentSSVM does not exist: use LatentSSVM(SubgradientSSVM(model))"
_LIBRARY = "imports a library of inference that is not used here"
_BY_TYPE = "wants potentials and beliefs as lists by type: ours are one array of all types"
_INITIALIZED = (
    "reads sizes of the model that was passed to the learner, which a fit does not change"
)
_OPTIMUM = "wants 0 for weights that must not be positive: at the optimum they are negative"
_AVERAGE = "a number of passes as average does not exist: it is True or False"
_PYTHON_2 = "is Python 2"
_NO_DATA = "needs data that are not part of its source, or that the copy does not have"

TESTS: dict[str, str] = {
    "test_binary_svm::test_break_ties": "wants class 1 where scores are equal: ours is class -1",
    "test_crammer_singer_svm::test_crammer_singer_model": _ENERGY,
    "test_crammer_singer_svm::test_crammer_singer_model_class_weight": _ENERGY,
    "test_crammer_singer_svm::test_blobs_2d_subgradient": _DEFAULTS,
    "test_crammer_singer_svm::test_class_weights_rescale_C": "rescale_C does not exist",
    "test_datasets::test_dataset_loading": _NO_DATA,
    "test_edge_feature_graph_crf::test_initialization": _SIZES,
    "test_graph_crf::test_initialize": _SIZES,
    "test_latent_node_crf_learning::test_latent_node_boxes_latent_subgradient": _SUBGRADIENT,
    "test_latent_svm::test_with_crosses_base_svms": _DEFAULTS,
    "test_latent_svm::test_switch_to_ad3": _SWITCH,
    "test_libraries::test_pyqpbo": _LIBRARY,
    "test_libraries::test_ad3": _LIBRARY,
    "test_libraries::test_ad3plus": _LIBRARY,
    "test_n_slack_ssvm::test_switch_to_ad3": _SWITCH,
    "test_n_slack_ssvm::test_binary_ssvm_repellent_potentials": _OPTIMUM,
    "test_node_type_edge_feature_graph_crf::test_checks": (
        "wants errors from the constructor: ours come with the first use, as in scikit-learn"
    ),
    "test_node_type_edge_feature_graph_crf::test_joint_feature": (
        "has an edge from a node to itself, which is refused"
    ),
    "test_node_type_edge_feature_graph_crf::test_joint_feature3": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_unary_potentials": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_inference_ad3plus": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_inference_ad3": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_energy_discrete": _BY_TYPE,
    "test_one_slack_ssvm::test_constraint_removal": "constraints_ does not exist",
    "test_one_slack_ssvm::test_one_slack_constraint_caching": "inference_cache_ does not exist",
    "test_one_slack_ssvm::test_one_slack_repellent_potentials": _OPTIMUM,
    "test_one_slack_ssvm::test_switch_to_ad3": _SWITCH,
    "test_perceptron::test_binary_blocks": _DEFAULTS,
    "test_perceptron::test_xor": _DEFAULTS,
    "test_perceptron::test_partial_averaging": _AVERAGE,
    "test_perceptron::test_averaging_early_stopping": _AVERAGE,
    "test_perceptron::test_averaged": _DEFAULTS,
    "test_structured_perceptron::test_binary_blocks_perceptron_online": _DEFAULTS,
    "test_subgradient_latent_svm::test_objective": _SUBGRADIENT,
    "test_subgradient_latent_svm::test_directional_bars": _SUBGRADIENT,
    "test_subgradient_svm::test_multinomial_blocks_subgradient": _DEFAULTS,
    "test_subgradient_svm::test_binary_blocks": _DEFAULTS,
    "test_subgradient_svm::test_subgradient_svm_as_crf_pickling": _DEFAULTS,
    "test_subgradient_svm::test_multinomial_blocks_subgradient_batch": _DEFAULTS,
    "test_utils_inference::test_ssvm_objectives": _INITIALIZED,
}

EXAMPLES: dict[str, str] = {
    "image_segmentation": _NO_DATA,
    "multi_label": "imports fetch_mldata, which scikit-learn has removed",
    "multiclass_comparision_svm_struct": "imports clock, which Python has removed",
    "plot_hidden_short_snakes_typed": "sets tol=0, which is refused",
    "plot_hidden_short_snakes_typed_gen": _PYTHON_2,
    "plot_latent_crf": _INITIALIZED,
    "plot_latent_node": _PYTHON_2,
    "plot_letters": _NO_DATA,
    "plot_snakes_constraints": _PYTHON_2,
    "plot_ssvm_objective_curves": "reads cached_constraint_, which does not exist",
}
