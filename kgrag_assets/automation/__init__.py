"""This room holds what belongs to partitions, conditions, jobs and sensors."""
