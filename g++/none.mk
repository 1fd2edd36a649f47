CUDA_WHY := nvcc 13.0 knows none of sm_ccache, but 75 80 86 87 88 89 90 100 103 110 120 121
