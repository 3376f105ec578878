import horovod.tensorflow.keras as hvd

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.LearningRateWarmupCallback(lr=1e-3 * hvd.size(), warmup_epochs=3),
]
