"""Is reality inside the ranges that a policy is trained on?"""
